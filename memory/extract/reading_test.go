package extract

import (
	"fmt"
	"strings"
	"testing"

	"ebb/compaction/compactiontest"
	"ebb/compaction/transcript"
	"ebb/memory/memorytest"
	"ebb/sessions"
	"ebb/sessions/llm"
	"ebb/sessions/llm/llmtest"
)

// Events outside the conversation are not shown, across the pages of a long log too, and not read again.
func TestOnlyTheTalkIsRead(t *testing.T) {
	t.Parallel()
	s := &shelf{events: logOf(page+20, 1)}
	for i := range s.events {
		s.events[i].Role = sessions.RoleAssistant
		if i%10 == 0 {
			s.events[i].Role = sessions.RoleUser
		}
	}
	last := s.events[page-10].Seq // events from here on are left out, answers that begin a page too
	s.events[page-5].Role, s.events[page].Role = sessions.RoleUser, sessions.RoleAssistant
	m := &memorytest.CallModel{Answers: []func() (llm.Response, error){memorytest.Args(memorytest.SaveCall("Alice owns billing"))}}
	f := flusher(s, m, 10_000)
	f.Talk = func(events []sessions.Event) (out []sessions.Event) {
		command := false
		for _, e := range events {
			if e.Role == sessions.RoleUser {
				command = e.Seq >= last
			}
			if !command {
				out = append(out, e)
			}
		}
		return out
	}
	out, err := f.Flush(t.Context(), due(s))
	if err != nil || s.cursor != page+20 || !s.flushes[len(s.flushes)-1].Last {
		t.Errorf("%+v, %v, cursor %d", out, err, s.cursor)
	}
	if want := fmt.Sprintf("events 1-%d", last-1); len(m.Asked) != 1 || strings.TrimRight(llmtest.Data(m.Asked[0]), "·") != want {
		t.Errorf("%d calls, the first of %.30q, want one of %s", len(m.Asked), llmtest.Data(m.Asked[0]), want)
	}
}

// The answer to a command is no part of the talk, also if the flush before ended between the two.
func TestAnswersToEarlierCommandsAreNotRead(t *testing.T) {
	t.Parallel()
	s := &shelf{events: logOf(6, 1), cursor: 3}
	for i, role := range []sessions.Role{"user", "assistant", "user", "assistant", "user", "assistant"} {
		s.events[i].Role = role
	}
	m := &memorytest.CallModel{Answers: []func() (llm.Response, error){memorytest.Args(memorytest.SaveCall("Alice owns billing"))}}
	f := flusher(s, m, 1000)
	f.Talk = func(events []sessions.Event) (out []sessions.Event) {
		command := false
		for _, e := range events {
			if e.Role == sessions.RoleUser {
				command = e.Seq == 3
			}
			if !command {
				out = append(out, e)
			}
		}
		return out
	}
	if _, err := f.Flush(t.Context(), due(s)); err != nil || len(m.Asked) != 1 || !strings.HasPrefix(llmtest.Data(m.Asked[0]), "events 5-6") {
		t.Errorf("%d calls, the first of %.30q, %v", len(m.Asked), llmtest.Data(m.Asked[0]), err)
	}
}

// realFlusher reads by the gateway's own transcripts and counts.
func realFlusher(s *shelf, m llm.Model, window int) *Flusher {
	w := transcript.Writer{Counter: compactiontest.Counter()}
	return &Flusher{
		Log: s, Facts: s, Flushes: s, Model: m, Context: window, Render: w.Write, Split: w.Split, Fence: transcript.Fence, Talk: allTalk, Clean: transcript.Clean,
		Count: compactiontest.Counter().Count,
	}
}

// A text that is longer than a part is read from its beginning to its end, wherever it stands: a message or the result
// of a tool. No credential is cut in two.
func TestLongTextsAreReadInPieces(t *testing.T) {
	t.Parallel()
	var parcels strings.Builder
	for i := range 900 {
		fmt.Fprintf(&parcels, "第%d号包裹在%d号院子里，密码是 hunter%d。", i, i, i)
	}
	for _, role := range []sessions.Role{sessions.RoleUser, sessions.RoleTool} {
		for at := range 3 {
			for _, window := range []int{16_000, 128_000} {
				e := logOf(3, 1)
				e[at].Content, e[at].Role, e[at].ToolName = parcels.String(), role, "list"
				s := &shelf{events: e}
				var shown strings.Builder
				f := realFlusher(s, modelFunc(func(r llm.Request) (llm.Response, error) {
					shown.WriteString(llmtest.Data(r))
					return memorytest.Args(`{"facts":[],"nothing_to_save":true}`)()
				}), window)
				out, err := f.Flush(t.Context(), due(s))
				if err != nil || s.cursor != 3 {
					t.Fatalf("%s %d: %v, cursor %d", role, at, err, s.cursor)
				}
				for i := range 900 {
					if !strings.Contains(shown.String(), fmt.Sprintf("第%d号包裹在%d号院子里", i, i)) {
						t.Fatalf("%s %d in a window of %d: parcel %d was not shown in %d calls", role, at, window, i, out.Calls)
					}
				}
				if strings.Contains(shown.String(), "hunter") {
					t.Error("a credential was shown")
				}
				for i, f := range s.flushes {
					if i > 0 && f.From != s.flushes[i-1].Through {
						t.Errorf("part %d is (%d, %d]", i, f.From, f.Through)
					}
				}
			}
		}
	}
}
