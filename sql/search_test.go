package sql_test

import (
	"strings"
	"testing"
	"time"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/sqltest"
)

// A path that a search gives leads memory_get to the memory, whatever zone this process, the server or the group is in.
func TestPathsLeadToMemories(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	for _, zone := range []*time.Location{nil, time.FixedZone("early", 14*3600), time.FixedZone("late", -12*3600)} {
		s, err := sql.Open(t.Context(), sql.Options{URL: url, Location: zone})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		if zone == nil {
			zone = time.UTC
		}
		c := newChat(t, s, sessions.ConversationID(zone.String()), "u", false)
		c.save(group(c, "deploy on Friday"))
		hits := c.search("deploy")
		if len(hits) != 1 {
			t.Fatalf("%s: found %+v", zone, hits)
		}
		got, err := memory.Get(t.Context(), s, c.reader, hits[0].Path, 1, 10, zone)
		if err != nil || !strings.Contains(got, "deploy on Friday") {
			t.Errorf("%s: %s leads to %q (%v)", zone, hits[0].Path, got, err)
		}
	}
}

// Of a long message only the piece is read that has what was looked for; of tool results a search reads nothing.
func TestLongBodies(t *testing.T) {
	t.Parallel()
	s, _ := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", "u", false)
	long := strings.Repeat("废话 and filler, ", 5000)
	c.say("u", long+"the Needle is here. "+long)
	c.say("u", "short Needle "+strings.Repeat("x", 1900))
	a, err := s.Accept(t.Context(), "a", c.reader.Key, sessions.Message{ID: "tool", SenderID: "u", Text: "go"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(t.Context(), c.lease, sessions.Turn{
		Taken: []int64{a.EventID}, TakenTokens: []int{1},
		Events: []sessions.Event{
			{Role: sessions.RoleAssistant, ToolCalls: []sessions.ToolCall{{ID: "c", Name: "find", Arguments: "{}"}}},
			{Role: sessions.RoleTool, ToolCallID: "c", ToolName: "find", Content: "needle " + long},
		},
	}); err != nil {
		t.Fatal(err)
	}

	hits := c.search("needle")
	if len(hits) != 2 || !strings.HasPrefix(hits[0].Content, "short Needle x") || hits[0].Score <= hits[1].Score {
		t.Fatalf("found %d, want the newer, whole, and the older: %.300v", len(hits), hits)
	}
	if h := hits[1].Content; !strings.HasPrefix(h, "…") || !strings.Contains(h, "the Needle is here") || len([]rune(h)) > 2001 {
		t.Errorf("of the long message %d characters were found: %.300q", len([]rune(h)), h)
	}
	for query, want := range map[string]int{"": 9, "needle": 3} {
		events, err := s.History(t.Context(), c.reader.Key, query, 0, 50)
		if err != nil || len(events) != want {
			t.Fatalf("history of %q has %d events (%v), want %d", query, len(events), err, want)
		}
		if e := events[0]; e.Role != sessions.RoleTool || e.ToolName != "find" || e.Seq != 9 || e.Key != c.reader.Key || e.CreatedAt.IsZero() {
			t.Errorf("history of %q begins with %.300v", query, e)
		}
		for _, e := range events {
			if len([]rune(e.Content)) > 2001 || e.Message != nil {
				t.Errorf("history of %q reads %d characters of event %d, and its message: %v", query, len([]rune(e.Content)), e.Seq, e.Message)
			}
		}
		lines := memory.EventLines(events, time.UTC)
		if found := strings.Contains(lines, "the Needle is here"); found != (query != "") {
			t.Errorf("history of %q shows the words in the middle of a long message: %t", query, found)
		}
	}
	if events, err := s.History(t.Context(), c.reader.Key, "needle filler nowhere nothing", 0, 1); err != nil || len(events) != 1 || events[0].Seq != 9 {
		t.Errorf("events with half of the words are %.300v (%v), want the newest", events, err)
	}
}

// Limits beyond all bounds list what there is, and those below nothing list nothing.
func TestAbsurdLimits(t *testing.T) {
	t.Parallel()
	s, _ := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", "u", false)
	for limit, want := range map[int]int{1 << 40: 2, -1: 0} {
		events, err := s.History(t.Context(), c.reader.Key, "", 0, limit)
		if err != nil || len(events) != want {
			t.Errorf("limit %d: history has %d events (%v), want %d", limit, len(events), err, want)
		}
		if events, err = s.Range(t.Context(), c.reader.Key, 0, 9, limit); err != nil || len(events) != want {
			t.Errorf("limit %d: the range has %d events (%v), want %d", limit, len(events), err, want)
		}
		if _, err := s.Pinned(t.Context(), c.reader, limit); err != nil {
			t.Errorf("limit %d: %v", limit, err)
		}
		if _, err := s.Search(t.Context(), c.reader, memory.Query{Text: "hello", Limit: limit}); err != nil {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
}
