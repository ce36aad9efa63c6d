package memory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"ebb/sessions"
)

// library is a memory to read from; it refuses to be asked for another session than its own.
type library struct {
	Store
	memories []Memory
	events   []sessions.Event
	err      error
	digests  []Memory
}

func (l *library) DigestsOf(_ context.Context, _ Reader, from, to time.Time) ([]Memory, error) {
	return slices.DeleteFunc(slices.Clone(l.digests), func(m Memory) bool { return m.CreatedAt.Before(from) || !m.CreatedAt.Before(to) }), nil
}

func (l *library) Pinned(_ context.Context, r Reader, limit int) ([]Memory, error) {
	if r.Key != "r/c" {
		return nil, errors.New("another session's memory was asked for")
	}
	return l.memories[:min(limit, len(l.memories))], l.err
}

func (l *library) Values(_ context.Context, r Reader, id int64) ([]Memory, error) {
	var out []Memory
	for _, m := range l.memories {
		if r.Key == "r/c" && (m.ID == id || m.SupersededBy == id) {
			out = append(out, m)
		}
	}
	return out, l.err
}

func (l *library) Range(_ context.Context, key sessions.Key, from, through int64, limit int) ([]sessions.Event, error) {
	if key != "r/c" {
		return nil, errors.New("another session's log was asked for")
	}
	var out []sessions.Event
	for _, e := range l.events {
		if e.Seq > from && e.Seq <= through && len(out) < limit {
			out = append(out, e)
		}
	}
	return out, l.err
}

var shanghai = time.FixedZone("CST", 8*3600)

func aLibrary() *library {
	day := time.Date(2026, 3, 1, 20, 0, 0, 0, time.UTC) // the 2nd of March in Shanghai
	l := &library{memories: []Memory{
		{ID: 3, Scope: ScopeGroup, Content: "release on friday", CreatedAt: day},
		{ID: 2, Scope: ScopeUser, Content: "likes tea", CreatedAt: day},
		{ID: 1, Scope: ScopeGroup, Content: "standup at ten", CreatedAt: day.AddDate(0, 0, -1)},
	}}
	for i := range 300 {
		l.events = append(l.events, sessions.Event{Seq: int64(i + 1), Role: sessions.RoleUser, SenderNick: "Alice", SenderID: "u1", Content: fmt.Sprintf("words\nof %d", i+1), CreatedAt: day})
	}
	return l
}

func TestGet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path        string
		from, lines int
		want        string // words that are in it, separated by |
		lack        string // words that are not
		count       int    // lines; 0: not looked at
	}{
		{"MEMORY.md", 0, 0, "release on friday|likes tea|standup at ten|[group 2026-03-02 04:00 #3]", "", 3},
		{"MEMORY.md", 2, 1, "likes tea", "release", 1},
		{"MEMORY.md", 9, 1, "has 3 lines", "release", 1},
		{"memory/group/2026-03-02.md", 0, 0, "release", "standup|tea", 1},
		{"memory/group/2026-03-02.md#3", 0, 0, "release", "standup", 1},
		{"memory/user/2026-03-02.md", 0, 0, "tea", "release", 1},
		{"memory/team/2026-03-02.md", 0, 0, "0 lines", "release", 1},
		{"session_events/7", 0, 3, "#7 2026-03-02 04:00 Alice(u1): words of 7|#9", "#6|#10", 3},
		{"session_events/7", 2, 2, "#8|#9", "#7|#10", 2},
		{"session_events/0", 0, 1, "#1", "#2", 1},
		{"session_events/999", 0, 5, "no events there", "", 1},
		{"session_events/1", 0, 100000, "#200", "#201", 200},
		{"session_events/1", -5, -5, "#50", "#51", 50},
	} {
		got, err := Get(t.Context(), aLibrary(), Reader{Key: "r/c"}, c.path, c.from, c.lines, shanghai)
		if err != nil {
			t.Errorf("%s: %v", c.path, err)
			continue
		}
		for w := range strings.SplitSeq(c.want, "|") {
			if !strings.Contains(got, w) {
				t.Errorf("%s from %d: %q is not in %q", c.path, c.from, w, got)
			}
		}
		for w := range strings.SplitSeq(c.lack, "|") {
			if w != "" && strings.Contains(got, w+" ") {
				t.Errorf("%s from %d: %q is in %q", c.path, c.from, w, got)
			}
		}
		if n := len(strings.Split(strings.TrimSpace(got), "\n")); n != c.count {
			t.Errorf("%s from %d: %d lines, want %d", c.path, c.from, n, c.count)
		}
	}
}

// Paths name rows, never files: anything else is refused with words that help, and cut short where it is long.
func TestGetRefusesOtherPaths(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"", "/etc/passwd", "../MEMORY.md", "MEMORY.md/", "memory/../../etc/passwd", "memory/group/../user/2026-03-02.md", "memory/secret/2026-03-02.md",
		"memory/group/2026-03-02.md/../x", "session_events/-1", "session_events/1/..", "session_events/9999999999999999999999", "session_events/1\n",
		"file:///etc/passwd", "memory/group/2026-3-2.md", strings.Repeat("x", 5000),
	} {
		got, err := Get(t.Context(), aLibrary(), Reader{Key: "r/c"}, path, 0, 0, shanghai)
		if err == nil {
			t.Errorf("%.60q was read: %q", path, got)
			continue
		}
		if !strings.Contains(err.Error(), "MEMORY.md") || len(err.Error()) > 500 {
			t.Errorf("%.60q: the error does not help: %.600s", path, err)
		}
	}
}

func TestEventLines(t *testing.T) {
	t.Parallel()
	got := EventLines([]sessions.Event{
		{Seq: 1, Role: sessions.RoleUser, SenderID: "u1", Content: "no nick"},
		{Seq: 2, Role: sessions.RoleAssistant, Content: strings.Repeat("字", 700)},
	}, shanghai)
	if !strings.Contains(got, "u1: no nick\n") || !strings.Contains(got, " assistant: "+strings.Repeat("字", 600)+"…\n") {
		t.Errorf("lines %q", got)
	}
}

// Who speaks is known by id, by label as transcripts write it, and by a nick that is theirs alone.
func TestRoster(t *testing.T) {
	t.Parallel()
	say := func(id sessions.UserID, nick string) sessions.Event {
		return sessions.Event{Role: sessions.RoleUser, SenderID: id, SenderNick: nick}
	}
	const stranger = sessions.UserID("$:LWCP_v1:$x")
	for name, c := range map[string]struct {
		events []sessions.Event
		want   map[string]sessions.UserID
	}{
		"plain": {
			[]sessions.Event{say("u1", "Alice"), say("u2", ""), {Role: sessions.RoleAssistant, SenderID: "bot", SenderNick: "Ebb"}, say("", "nobody")},
			map[string]sessions.UserID{"Alice": "u1", "u1": "u1", "Alice(u1)": "u1", "u2": "u2"},
		},
		"an outsider takes a member's label": {
			[]sessions.Event{say("u1", "Boss"), say(stranger, "Boss(u1)")},
			map[string]sessions.UserID{"Boss(u1)": "u1", "Boss": "u1", "u1": "u1", "Boss u1［外部］": stranger, "Boss u1": stranger, string(stranger): stranger},
		},
		"first the outsider, then the member": {
			[]sessions.Event{say(stranger, "Boss(u1)"), say("u1", "Boss")},
			map[string]sessions.UserID{"Boss(u1)": "u1", "Boss": "u1", "u1": "u1", "Boss u1［外部］": stranger, "Boss u1": stranger, string(stranger): stranger},
		},
		"a nick is somebody's id": {
			[]sessions.Event{say("u1", "Boss"), say("u2", "u1")},
			map[string]sessions.UserID{"Boss(u1)": "u1", "Boss": "u1", "u1": "u1", "u1(u2)": "u2", "u2": "u2"},
		},
		"namesakes": {
			[]sessions.Event{say("u1", "Li"), say("u2", "Li"), say("u1", "Li")},
			map[string]sessions.UserID{"Li(u1)": "u1", "u1": "u1", "Li(u2)": "u2", "u2": "u2"},
		},
		"namesakes from outside": {
			[]sessions.Event{say("$:a", "Li"), say("$:b", "Li")},
			map[string]sessions.UserID{"$:a": "$:a", "$:b": "$:b"},
		},
	} {
		if got := RosterOf(c.events); !maps.Equal(got, c.want) {
			t.Errorf("%s: roster %v, want %v", name, got, c.want)
		}
	}
}
