package transcript

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ebb/compaction/compactiontest"
	"ebb/sessions"
)

// texts reads a transcript back: the texts of each event, joined.
func texts(t interface{ Fatalf(string, ...any) }, transcript string, into map[int64]string) {
	for line := range strings.Lines(transcript) {
		if strings.HasPrefix(line, "{") {
			var got eventLine
			if err := json.Unmarshal([]byte(line), &got); err != nil {
				t.Fatalf("line %q: %v", line, err)
			}
			into[got.N] += got.Text
		}
	}
}

// P76: whatever is said, by whom and in which window: the texts that a model gets one after the other have every event
// whole, with its calls, within the limit.
func TestTranscriptsHaveEverythingWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(400, 3000).Draw(t, "limit")
		unit := rapid.SampledFrom([]string{"a", "汉", "🙂", "row 17 | ok\n", "第3号包裹在院子里。\n", "\x00", "\\\"", "  \n"})
		var events []sessions.Event
		for i := range rapid.IntRange(1, 6).Draw(t, "events") {
			e := sessions.Event{Seq: int64(i + 1), Role: rapid.SampledFrom([]sessions.Role{"user", "assistant", "tool"}).Draw(t, "role")}
			for range rapid.IntRange(0, 3).Draw(t, "parts") {
				e.Content += compactiontest.Hostile().Draw(t, "words") + strings.Repeat(unit.Draw(t, "unit"), rapid.IntRange(0, 4000).Draw(t, "times"))
			}
			if e.Role == sessions.RoleAssistant {
				e.ToolCalls = []sessions.ToolCall{{Name: fmt.Sprint("look", i), Arguments: "{}"}}
			}
			events = append(events, e)
		}
		w := Writer{Counter: compactiontest.Counter(), Cleaner: Cleaner{}}
		var rest []sessions.Event
		for _, e := range events {
			rest = append(rest, w.Split(e, limit)...)
		}
		got := map[int64]string{}
		for len(rest) > 0 {
			text, n := w.Write(rest, limit)
			if size := compactiontest.Counter().Count(text); size > limit {
				t.Fatalf("a text of %d tokens, the limit is %d", size, limit)
			}
			texts(t, text, got)
			rest = rest[n:]
		}
		for _, e := range events {
			// JSON replaces bytes that are no characters.
			if want := strings.ToValidUTF8(Cleaner(nil).EventText(e), "\uFFFD"); strings.ToValidUTF8(got[e.Seq], "\uFFFD") != want {
				t.Fatalf("event %d of %d bytes reads as %d: %.300q", e.Seq, len(want), len(got[e.Seq]), got[e.Seq])
			}
		}
	})
}

// A long text behind a short one begins the next text: shortened to the room that is left, it would lose its middle.
func TestOnlyTheFirstEventIsShortened(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("parcels stand in the yard. ", 1000)
	events := []sessions.Event{{Seq: 1, Role: sessions.RoleUser, Content: "x"}, {Seq: 2, Role: sessions.RoleUser, Content: long}}
	if text, n := (Writer{Counter: compactiontest.Counter()}).Write(events, 2000); n != 1 || strings.Contains(text, "parcels") {
		t.Errorf("%d events in a text: %.200s", n, text)
	}
}

// Lines of a log are not cut in two.
func TestPiecesEndWithLines(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&log, "%04d 网关 gw-%d 返回 502，重试后成功\n", i, i)
	}
	w := Writer{Counter: compactiontest.Counter(), Cleaner: Cleaner{}}
	pieces := w.Split(sessions.Event{Seq: 1, Role: sessions.RoleTool, Content: log.String()}, 4000)
	if len(pieces) < 5 {
		t.Errorf("%d pieces", len(pieces))
	}
	for i, p := range pieces {
		if !strings.HasSuffix(p.Content, "成功\n") || p.Tokens != compactiontest.Counter().Count(p.Content) || p.Seq != 1 || p.Role != sessions.RoleTool {
			t.Errorf("piece %d ends with %q", i, p.Content[max(0, len(p.Content)-40):])
		}
	}
}
