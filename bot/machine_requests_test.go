package bot_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ebb/bot/bottest"
	"ebb/sessions"
	"ebb/sessions/llm"
)

var (
	clockRE = regexp.MustCompile(`^\[(\d{4}-\d\d-\d\d )?\d\d:\d\d( \w+ \S+?)?(; group .*)?\]$`)
	tagRE   = regexp.MustCompile(`\(m(\d+)\)`)
	rangeRE = regexp.MustCompile(`(?m)^<<<summary (\d+)-\d+ [0-9a-f]{12}$`)
)

// checkRequest holds what every request must be.
func (m *machine) checkRequest(v sessions.View, a asked) {
	// P16, P17, P18, P24: calls and results stand together, a person speaks first, and is asked.
	if why := bottest.Illegal(a.Messages); why != "" {
		m.broken("P16: a request is illegal", a.kind, why)
	}
	for _, msg := range a.Messages {
		for _, c := range msg.ToolCalls {
			if c.ID == "" || c.Name == "" {
				m.broken("P17: a call has no name", c)
			}
		}
	}
	if first := a.Messages[1]; first.Role != "user" || strings.TrimSpace(first.Content) == "" {
		m.broken("P18: a request begins with no person", a.kind)
	}
	// P22: nothing that was said stands in the system's words.
	if sys := a.Messages[0].Content; tagRE.MatchString(sys) || a.kind == "chat" && sys != m.w.Views.Frames.Common.System {
		m.broken("P22: the system message has what was said", a.kind)
	}
	// P23: as far as our counting is right, no request is larger than the window leaves room for next to the answer.
	// The reserve has 1024 tokens for errors of counting.
	most := m.set.Window.Context - a.MaxOutput
	if a.kind == "chat" {
		most = m.set.Window.Usable() + 1024
	}
	if m.factor == 1 && a.tokens > most {
		m.broken("P23: a request is larger than the window: "+a.kind, a.tokens, most, sizes(a.Messages))
	}
	if a.kind == "chat" {
		m.checkChat(v, a)
	}
}

// sizes are the roles and tokens of messages.
func sizes(msgs []llm.Message) (out []string) {
	for _, msg := range msgs {
		out = append(out, fmt.Sprint(msg.Role, " ", tokensOf(msg.Content)))
	}
	return out
}

// checkChat holds what a request of a turn must be.
func (m *machine) checkChat(v sessions.View, a asked) {
	said, shown := asks(a.Messages)
	if len(said) == 0 {
		m.broken("P20: a request asks nothing")
	}
	for _, msg := range said {
		m.checkAsked(a, msg)
	}
	// P15: nothing of an older generation is shown.
	for _, msg := range a.Messages {
		for _, tag := range tagRE.FindAllStringSubmatch(msg.Content, -1) {
			if n, _ := strconv.Atoi(tag[1]); n <= m.first {
				m.broken("P15: a request shows what was said before /new", tag[0])
			}
		}
	}
	for _, r := range rangeRE.FindAllStringSubmatch(a.Messages[1].Content, -1) {
		if n, _ := strconv.ParseInt(r[1], 10, 64); n <= v.Session.BaseSeq {
			m.broken("P15: a request tells what was said before /new", r[0])
		}
	}
	// P8: no more events than the policy shows at most.
	if most := m.set.Policy.ContextSize; most > 0 && shown > most {
		m.broken("P8: a request shows too many events", shown, most)
	}
	m.checkPrefix(a)
}

// asks are the questions that a request ends with, and how many events it shows before them. A turn's own calls and
// results may follow.
func asks(msgs []llm.Message) (said []llm.Message, shown int) {
	for i, msg := range msgs {
		switch {
		case msg.Role == "system", msg.Role == "user" && (clockRE.MatchString(msg.Content) || strings.HasPrefix(msg.Content, "参考资料")):
			continue
		case msg.Role == "user" && (len(said) == 0 || spoke(msgs[:i]) == "user"):
			said = append(said, msg)
		case msg.Role == "user":
			said = []llm.Message{msg}
		}
		shown++
	}
	for i := len(msgs) - 1; i >= 0 && (msgs[i].Role != "user"); i-- {
		shown-- // an event of this turn
	}
	return said, shown - len(said)
}

// spoke is who spoke last, the clock aside.
func spoke(msgs []llm.Message) string {
	for _, msg := range slices.Backward(msgs) {
		if msg.Role != "user" || !clockRE.MatchString(msg.Content) {
			return msg.Role
		}
	}
	return ""
}

// checkAsked holds P20: what was asked last stands at the end, once, as it was said.
func (m *machine) checkAsked(a asked, msg llm.Message) {
	tag := tagRE.FindString(msg.Content)
	n, _ := strconv.Atoi(strings.Trim(tag, "(m)"))
	words := m.posted[sessions.MessageID(fmt.Sprint("id", n))]
	if words == "" {
		m.broken("P20: a request ends with what nobody said", tag)
	}
	if tokensOf(words) <= m.set.Window.Usable()/4 && !strings.HasSuffix(msg.Content, ": "+words) {
		m.broken("P20: a question is not asked as it was said", msg.Content)
	}
	times := 0
	for _, o := range a.Messages {
		if o.Role == "user" && !strings.HasPrefix(o.Content, "参考资料") && strings.Contains(o.Content, tag) {
			times++
		}
	}
	if times != 1 {
		m.broken("P20: a question stands there more than once", tag, times)
	}
}

// checkPrefix holds P81: between two compactions each request goes on where the one before it ended.
func (m *machine) checkPrefix(a asked) {
	if a.Messages[len(a.Messages)-1].Role != "user" {
		return // a later round of its turn, which may shorten its own results
	}
	was := m.before.request
	m.before.request = a
	if strings.Contains(a.Messages[1].Content, "<<<left-out ") || a.over || !a.calm {
		m.before.request = asked{}
		return
	}
	if was.Messages == nil || was.epoch != a.epoch {
		return
	}
	if len(was.Messages) > len(a.Messages) || bottest.Transcript(was.Messages) != bottest.Transcript(a.Messages[:len(was.Messages)]) {
		m.broken("P81: a request does not begin as the last one", bottest.Transcript(was.Messages), "-----", bottest.Transcript(a.Messages))
	}
}
