package chaos

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"ebb/bot/openai/openaitest"
	"ebb/bot/tools/mcp/mcptest"
	"ebb/bot/view"
	"ebb/cmd/lab/rig"
)

// toolKinds are questions that make the model call a tool. One server is sound. The other one dies, hangs and floods in the middle of calls.
var toolKinds = []chaosKind{
	{"tool", 4, callTool(sound, "ok")},
	{"tool slow", 4, callTool(sound, "slow")},
	{"odd tool", 4, callTool(odd, "ok")},
	{"odd tool slow", 2, callTool(odd, "slow")},
	{"odd tool dies", 2, callTool(odd, "die")},
	{"odd tool hangs", 1, callTool(odd, "hang")},
	{"odd tool floods", 1, callTool(odd, "flood")},
	{"approval", 8, askApproval},
}

// The names of the servers.
const (
	sound = "sound"
	odd   = "odd"
)

// toolTime bounds a call.
const toolTime = 3 * time.Second

// Tools is the hidden command that the gateways run as their server of tools.
type Tools struct{}

// Run serves until the end of its input.
func (Tools) Run(ctx context.Context, _ *rig.App) error { return mcptest.Serve(ctx) }

// wantedCall is the call that a message wants.
type wantedCall struct {
	word   string // in its arguments, and in no others
	server string
	how    string // it goes: ok, slow, die, hang, flood
	signs  bool   // it needs an approval
}

// effect is one execution of a call.
type effect struct {
	at            time.Time
	word, how     string
	process, name string // gateway and server
}

// callResult is the result of a call in a request.
type callResult struct {
	process string
	at      time.Time // request
	text    string
}

// toolServers configures the servers of a gateway. Each notes its effects in a file of its own.
func (w *world) toolServers(process string) (map[string]any, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the program of the tools: %w", err)
	}
	var servers []map[string]any
	for _, name := range []string{sound, odd} {
		servers = append(servers, map[string]any{
			"name": name, "command": program, "args": []string{"tools"}, "allow": []string{"note", signTool}, "confirm": []string{signTool}, "timeout": toolTime.String(), "max_result_tokens": 300,
			"env": map[string]string{"ODD_FILE": w.effectsFile(process, name)},
		})
	}
	return map[string]any{"mcp": servers, "approval_timeout": approvalTime.String()}, nil
}

const effectsSuffix = ".effects"

func (w *world) effectsFile(process, server string) string {
	return filepath.Join(w.dir, process+"."+server+effectsSuffix)
}

// readEffects reads the files of all servers.
func (w *world) readEffects() ([]effect, error) {
	files, err := filepath.Glob(filepath.Join(w.dir, "*"+effectsSuffix))
	if err != nil {
		return nil, fmt.Errorf("listing the effects of tools: %w", err)
	}
	var all []effect
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("reading the effects of tools: %w", err)
		}
		process, name, _ := strings.Cut(strings.TrimSuffix(filepath.Base(path), effectsSuffix), ".")
		for in := bufio.NewScanner(strings.NewReader(string(data))); in.Scan(); {
			f := strings.Fields(in.Text())
			if len(f) != 3 {
				return nil, fmt.Errorf("a server of tools noted %q", in.Text())
			}
			at, err := strconv.ParseInt(f[0], 10, 64)
			if err != nil {
				return nil, fmt.Errorf("a server of tools noted %q: %w", in.Text(), err)
			}
			all = append(all, effect{at: time.Unix(0, at), how: f[1], word: f[2], process: process, name: name})
		}
	}
	return all, nil
}

// callTool has a member ask for the call of a tool.
func callTool(server, how string) func(injector, context.Context, fault) error {
	return func(w injector, _ context.Context, t fault) error {
		who := w.talk.people[t.n%len(w.talk.people)]
		w.talk.sayAs(who, w.talk.pickPlace(who, t.n), func(u *remark) string {
			u.wants = wantedCall{word: "T" + u.mark[2:], server: server, how: how}
			return u.mark + " " + u.wants.request("note")
		}, nil)
		return nil
	}
}

func (c wantedCall) request(tool string) string {
	return fmt.Sprintf(`用工具 %s__%s {"text":"%s %s"}`, c.server, tool, c.how, c.word)
}

var (
	toolRequest = regexp.MustCompile(`用工具 (\w+) (\{"text":"[a-z]+ (T\d{6})"\})`)
	toolWord    = regexp.MustCompile(`T\d{6}`)
)

// turnIn is the end of a request, behind the last answer: the questions, with the calls and results of their turn so far. An endpoint without calls
// has them as text.
func turnIn(messages []openaitest.Message) []openaitest.Message {
	for i, m := range slices.Backward(messages) {
		calls := len(m.ToolCalls) > 0 || toolWord.MatchString(m.Content) && !approvalNumber.MatchString(m.Content)
		if m.Role == "assistant" && !calls {
			return messages[i+1:]
		}
	}
	return messages
}

// questionsOf are the messages of people.
func questionsOf(turn []openaitest.Message) []openaitest.Message {
	return slices.DeleteFunc(slices.Clone(turn), func(m openaitest.Message) bool { return m.Role != "user" })
}

// nextCall is the next call that the questions of a turn want; empty for none.
func nextCall(turn []openaitest.Message) (tool, args string) {
	made := map[string]bool{}
	for _, m := range turn {
		if m.Role == "assistant" {
			for _, word := range toolWord.FindAllString(m.Content, -1) {
				made[word] = true
			}
			for _, c := range m.ToolCalls {
				made[toolWord.FindString(c.Arguments)] = true
			}
		}
	}
	for _, m := range questionsOf(turn) {
		for _, wanted := range toolRequest.FindAllStringSubmatch(m.Content, -1) {
			if !made[wanted[3]] {
				return wanted[1], wanted[2]
			}
		}
	}
	return "", ""
}

// noteResults notes the results of calls in a request.
func (m *chaosModel) noteResults(r openaitest.Request) {
	words, last := map[string]string{}, map[string]string{} // words by the id of a call, and results by word
	for _, msg := range r.Messages {
		for _, c := range msg.ToolCalls {
			words[c.ID] = toolWord.FindString(c.Arguments)
		}
		if word := words[msg.ToolCallID]; msg.Role == "tool" && word != "" {
			last[word] = msg.Content
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for word, text := range last {
		if m.results[word].text != text {
			m.results[word] = callResult{r.Key, time.Now(), text}
		}
	}
}

func (m *chaosModel) copyResults() map[string]callResult {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make(map[string]callResult, len(m.results))
	for word, r := range m.results {
		out[word] = r
	}
	return out
}

// checkTools: no call has its effect twice. A call of the sound server has its result, whatever the other server does. A call of the odd one
// that goes well fails only while its server is away.
func (e *evidence) checkTools(f *findings) {
	times := map[string]int{}
	for _, x := range e.effects {
		f.effects++
		if times[x.word]++; times[x.word] == 2 {
			f.addBroken("call %s (%s) had its effect twice, also in %s of %s at %s", x.word, x.how, x.name, x.process, x.at.Format("15:04:05.000"))
		}
	}
	wanted := map[string]remark{}
	for _, u := range e.said {
		if u.wants.word != "" {
			wanted[u.wants.word] = u
		}
	}
	for word := range times {
		if _, known := wanted[word]; !known {
			f.addBroken("call %s had an effect, and no member asked for it", word)
		}
	}
	for word, r := range e.results {
		u, c := wanted[word], wanted[word].wants
		done := strings.Contains(r.text, "noted: "+c.how+" "+word) || c.how == "flood" && strings.Contains(r.text, "0123456789")
		waits := strings.HasPrefix(r.text, "Not run yet: ") // checkApprovals judges it
		cutOff := strings.Contains(r.text, view.Interrupted) || strings.HasPrefix(r.text, "Not run: ")
		switch {
		case done && times[word] == 0:
			f.addBroken("call %s has the result %q, and no server made it", word, shorten(r.text))
		case waits:
		case done:
			f.results++
		case cutOff:
			f.unknownCalls++
		case c.how == "ok" || c.how == "slow":
			f.failedCalls++
			if !e.mayFail(u, r) {
				f.addBroken("call %s of server %s failed without a cause in %s: %q", word, c.server, r.process, shorten(r.text))
			}
		default:
			f.failedCalls++
		}
	}
}

// firstPause is the time from the death of a server to its next start. It doubles with each death of a process's server.
const (
	firstPause = time.Second
	mostPauses = 7
	startRoom  = 10 * time.Second // for the start of a server on a busy machine
)

// mayFail reports whether a call had a reason to fail. Its gateway stood still, or had just begun. The odd server may be away after its death,
// the longer, the more often it has died.
func (e *evidence) mayFail(u remark, r callResult) bool {
	l := e.lives[r.process]
	if l.wasApart(u.pushed, r.at) || r.at.Sub(l.started) < startRoom+toolTime {
		return true
	}
	if u.wants.server == sound {
		return false
	}
	deaths, last := 0, time.Time{}
	for _, x := range e.effects {
		if x.process == r.process && x.name == odd && x.how == "die" && x.at.Before(r.at) {
			deaths, last = deaths+1, x.at
		}
	}
	pause := firstPause << min(max(0, deaths-1), mostPauses)
	return deaths > 0 && r.at.Sub(last) < pause+pause/4+startRoom
}
