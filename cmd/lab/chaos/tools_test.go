package chaos

import (
	"slices"
	"strings"
	"testing"

	"ebb/bot/openai/openaitest"
	"ebb/bot/view"
)

// Each case breaks one promise about calls of tools, or has a cause that excuses it.
func TestCheckerOfTools(t *testing.T) {
	t.Parallel()
	const failed = "error: the server is not connected"
	die := func(ms int) effect {
		return effect{at: at(ms), word: "T000002", how: "die", process: "g1-1", name: odd}
	}
	for _, tt := range []struct {
		name   string
		server string
		spoil  func(*evidence)
		want   string
	}{
		{"made once", sound, func(*evidence) {}, ""},
		{"made twice", sound, func(e *evidence) { e.effects = append(e.effects, e.effects[0]) }, "call T000001 (ok) had its effect twice, also in sound of g1-1"},
		{"a result of nothing", sound, func(e *evidence) { e.effects = nil }, "and no server made it"},
		{"not asked for", sound, func(e *evidence) { e.effects = append(e.effects, effect{word: "T000009"}) }, "call T000009 had an effect, and no member asked for it"},
		{"outcome unknown", sound, func(e *evidence) { e.fail(view.Interrupted) }, ""},
		{"the sound server fails", sound, func(e *evidence) { e.fail(failed) }, "call T000001 of server sound failed without a cause in g1-1"},
		{"the sound server fails beside the odd one", sound, func(e *evidence) { e.effects = append(e.effects, die(20_000)); e.fail(failed) }, "call T000001 of server sound failed without a cause in g1-1"},
		{"the odd server is away", odd, func(e *evidence) { e.effects = append(e.effects, die(20_000)); e.fail(failed) }, ""},
		{"the odd server died long ago", odd, func(e *evidence) { e.effects = append(e.effects, die(5000)); e.fail(failed) }, "call T000001 of server odd failed without a cause in g1-1"},
		{"the odd server of another process died", odd, func(e *evidence) {
			e.effects = append(e.effects, die(20_000))
			e.effects[1].process = "g2-1"
			e.fail(failed)
		}, "call T000001 of server odd failed without a cause in g1-1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := wholeEvidence()
			e.change("q0000001", func(r *remark) { r.wants = wantedCall{word: "T000001", server: tt.server, how: "ok"} })
			e.change("q0000002", func(r *remark) { r.wants = wantedCall{word: "T000002", server: odd, how: "die"} })
			e.effects = []effect{{at: at(50), word: "T000001", how: "ok", process: "g1-1", name: tt.server}}
			e.results = map[string]callResult{"T000001": {"g1-1", at(60), "noted: ok T000001"}}
			tt.spoil(e)
			got := e.checkAll().broken
			if tt.want == "" && len(got) > 0 || tt.want != "" && (len(got) != 1 || !strings.Contains(got[0], tt.want)) {
				t.Errorf("found %q, want only %q", got, tt.want)
			}
		})
	}
}

// fail gives the call another result, long after the start of its process.
func (e *evidence) fail(text string) { e.results["T000001"] = callResult{"g1-1", at(22_000), text} }

// The model makes each call of a turn once, also where an endpoint has calls as text, and none of earlier turns.
func TestModelMakesCalls(t *testing.T) {
	t.Parallel()
	say := func(role, text string) openaitest.Message { return openaitest.Message{Role: role, Content: text} }
	first, second := wantedCall{word: "T000001", server: sound, how: "ok"}, wantedCall{word: "T000002", server: odd, how: "die"}
	call := openaitest.Message{Role: "assistant", ToolCalls: []openaitest.Call{{ID: "a", Name: "sound__note", Arguments: `{"text":"ok T000001"}`}}}
	result := openaitest.Message{Role: "tool", ToolCallID: "a", Content: "noted: ok T000001"}
	earlier := []openaitest.Message{say("user", "q0000001 "+first.request("note")), call, result, say("assistant", "q0000001 "+modelWords)}
	questions := []openaitest.Message{say("user", "q0000002 "+first.request("note")), say("user", "q0000003 "+second.request("note"))}
	for _, tt := range []struct {
		name     string
		messages []openaitest.Message
		want     string
	}{
		{"no question", earlier, " "},
		{"two questions", append(slices.Clone(earlier), questions...), `sound__note {"text":"ok T000001"}`},
		{"one call made", append(slices.Concat(earlier, questions), call, result), `odd__note {"text":"die T000002"}`},
		{"one call made as text", append(slices.Concat(earlier, questions), say("assistant", "sound__note ok T000001"), say("user", "noted: ok T000001")), `odd__note {"text":"die T000002"}`},
		{"a notice ends a turn", append(slices.Clone(questions), say("assistant", "等待批准 #1 T000001"), say("user", "q0000004")), " "},
	} {
		turn := turnIn(tt.messages)
		tool, args := nextCall(turn)
		if got := tool + " " + args; got != tt.want {
			t.Errorf("%s: the next call is %s, want %s", tt.name, got, tt.want)
		}
	}
}
