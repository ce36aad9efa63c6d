package written

import (
	"regexp"
	"slices"
	"strings"
)

// names are the bot's and those of people, as the request shows them, with the messages to answer.
type names struct {
	self     string
	own      []string // forms of self before an answer
	speakers []string // with variants
	askers   []string
	question string
}

func newNames(c Config) names {
	ns := names{self: c.Self, speakers: c.Speakers, askers: c.Askers, question: c.Question}
	if c.Self != "" {
		ns.own = []string{c.Self, "@" + c.Self, "「" + c.Self + "」"}
	}
	for _, s := range c.Speakers {
		ns.speakers = append(slices.Clip(ns.speakers), variants(s)...)
	}
	return ns
}

// variants are a name with the brackets that Chinese models write, and with a blank before them.
func variants(name string) []string {
	at := strings.LastIndexByte(name, '(')
	if at < 0 || !strings.HasSuffix(name, ")") {
		return nil
	}
	nick, id := name[:at], name[at+1:len(name)-1]
	if nick == "" {
		return nil
	}
	return []string{"[" + name + "]", nick + "（" + id + "）", nick + " (" + id + ")", nick + " （" + id + "）"}
}

var plainName = strings.NewReplacer(" （", "(", "（", "(", " (", "(", "）", ")")

// asked reports whether a name is that of a person whose message is answered.
func (ns *names) asked(name string) bool {
	return slices.Contains(ns.askers, plainName.Replace(name))
}

// speaker matches the name of a person with its colon. wait: it may become one.
func (ns *names) speaker(s string) (n int, who string, wait bool) {
	return nameAt(s, false, ns.speakers...)
}

// areIn reports whether a line has further names: it gives words or work to several speakers, as in "张三(u2): 接口；李四(u3): 测试".
func (ns *names) areIn(line string) bool {
	return slices.ContainsFunc(ns.speakers, func(s string) bool { return strings.Contains(line, s+":") || strings.Contains(line, s+"：") })
}

// nameAt matches a name with its colon. wait: it may become one. Only the bot's own may be bold: a bold name of a person is content.
func nameAt(s string, own bool, names ...string) (n int, who string, wait bool) {
	body, stars := s, ""
	if own {
		body, stars = strings.TrimPrefix(s, "**"), "*"
	}
	for _, one := range names {
		if one == "" {
			continue
		}
		rest, ok := cutFold(body, one)
		if !ok {
			wait = wait || len(s) < len(one)+2 && (s == stars || foldPrefix(one, body))
			continue
		}
		if open := strings.TrimPrefix(rest, " "); own && (strings.HasPrefix(open, "(") || strings.HasPrefix(open, "（")) { // with an id, as people have
			end := ")"
			if open[0] != '(' {
				end = "）"
			}
			id, after, closed := strings.Cut(rest, end)
			if !closed || len(id) >= maxID {
				wait = wait || !closed && len(id) < maxID
				continue
			}
			rest = after
		}
		end := strings.TrimLeft(rest, stars+" ")
		switch {
		case end == "":
			wait = true
		case strings.HasPrefix(end, ":"), strings.HasPrefix(end, "："):
			after := strings.TrimPrefix(strings.TrimPrefix(end, ":"), "：")
			if len(body) < len(s) && !strings.Contains(rest[:len(rest)-len(end)], "*") { // the colon is bold, too
				if strings.HasPrefix("**", after) && after != "**" {
					return len(s) - len(after), one, true
				}
				after = strings.TrimPrefix(after, "**")
			}
			return len(s) - len(after), one, false
		}
	}
	return 0, "", wait
}

// boxed matches the bot's name in brackets, which no link follows. wait: it may become one.
func (ns *names) boxed(s string) (n int, wait bool) {
	if ns.self == "" {
		return 0, false
	}
	for _, label := range []string{"[" + ns.self + "]", "【" + ns.self + "】"} {
		rest, ok := cutFold(s, label)
		after := strings.TrimLeft(rest, " ")
		switch {
		case !ok:
			wait = wait || len(s) < len(label) && foldPrefix(label, s)
		case after == "":
			return 0, true
		case after[0] == '(' || after[0] == '[':
			return 0, false
		default:
			return len(s) - len(strings.TrimPrefix(strings.TrimPrefix(after, ":"), "：")), false
		}
	}
	return 0, wait
}

const maxID = 80 // bytes

func cutFold(s, prefix string) (string, bool) {
	if len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix) {
		return s[len(prefix):], true
	}
	return s, false
}

func foldPrefix(s, prefix string) bool {
	return len(prefix) <= len(s) && strings.EqualFold(s[:len(prefix)], prefix)
}

// The times that a request shows before a message.
var (
	clock     = regexp.MustCompile(`^\[(?:\d{4}-\d\d-\d\d )?\d\d:\d\d(?: [^\]\n]{1,160})?\]`)
	fullClock = regexp.MustCompile(`^\[\d{4}-\d\d-\d\d \d\d:\d\d [A-Z][a-z]+ [^\]\n]{1,160}\]`)
	halfClock = regexp.MustCompile(`^\[(?:\d{0,4}|\d{4}-[\d-]{0,5}|\d{4}-\d\d-\d\d [\d:]{0,5}|[\d:]{0,5}|(?:\d{4}-\d\d-\d\d )?\d\d:\d\d [^\]\n]{0,160})$`)
)
