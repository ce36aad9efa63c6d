package search_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ebb/memory"
	"ebb/memory/show"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
	"ebb/sql/yardstick"
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
		c := storetest.NewChat(t, s, sessions.ConversationID(zone.String()), "u", false)
		c.Save(storetest.GroupFact(c, "deploy on Friday"))
		hits := c.Search("deploy")
		if len(hits) != 1 {
			t.Fatalf("%s: found %+v", zone, hits)
		}
		got, err := show.Get(t.Context(), storetest.Library{Store: s.Facts, Digests: s.Digests}, c.Reader, hits[0].Path, 1, show.LogReader{Location: zone})
		if err != nil || !strings.Contains(got, "deploy on Friday") {
			t.Errorf("%s: %s leads to %q (%v)", zone, hits[0].Path, got, err)
		}
	}
}

// A long message is read in the piece that matched only; tool results are not searched.
func TestLongBodies(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u", false)
	long := strings.Repeat("废话 and filler, ", 5000)
	c.Say("u", long+"the Needle is here. "+long)
	c.Say("u", "short Needle "+strings.Repeat("x", 1900))
	a, err := s.Inbox.Accept(t.Context(), "a", c.Reader.Key, sessions.Message{ID: "tool", SenderID: "u", Text: "go"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Turns.Commit(t.Context(), c.Lease, sessions.TurnResult{
		Taken: []int64{a.EventID}, TakenTokens: []int{1},
		Events: []sessions.Event{
			{Role: sessions.RoleAssistant, ToolCalls: []sessions.ToolCall{{ID: "c", Name: "find", Arguments: "{}"}}},
			{Role: sessions.RoleTool, ToolCallID: "c", ToolName: "find", Content: "needle " + long},
		},
	}); err != nil {
		t.Fatal(err)
	}

	hits := c.Search("needle")
	if len(hits) != 2 || !strings.HasPrefix(hits[0].Content, "short Needle x") || hits[0].Score <= hits[1].Score {
		t.Fatalf("found %d, want the newer, whole, and the older: %.300v", len(hits), hits)
	}
	if h := hits[1].Content; !strings.HasPrefix(h, "…") || !strings.Contains(h, "the Needle is here") || len([]rune(h)) > 2001 {
		t.Errorf("of the long message %d characters were found: %.300q", len([]rune(h)), h)
	}
	for query, want := range map[string]int{"": 9, "needle": 3} {
		finds, err := s.Search.History(t.Context(), c.Reader.Key, memory.LogQuery{Words: query, Limit: 50, Chars: 2000})
		events := finds.Events
		if err != nil || len(events) != want {
			t.Fatalf("history of %q has %d events (%v), want %d", query, len(events), err, want)
		}
		if e := events[0]; e.Role != sessions.RoleTool || e.ToolName != "find" || e.Seq != 9 || e.Key != c.Reader.Key || e.CreatedAt.IsZero() {
			t.Errorf("history of %q begins with %.300v", query, e)
		}
		for _, e := range events {
			if len([]rune(e.Content)) > 2001 || e.Message != nil {
				t.Errorf("history of %q reads %d characters of event %d, and its message: %v", query, len([]rune(e.Content)), e.Seq, e.Message)
			}
		}
		text := ""
		for _, e := range events {
			if e.Cut != (e.Seq == 3 || e.Seq == 9) {
				t.Errorf("history of %q: event %d is cut: %t", query, e.Seq, e.Cut)
			}
			text += e.Content
		}
		if found := strings.Contains(text, "the Needle is here"); found != (query != "") {
			t.Errorf("history of %q shows the words in the middle of a long message: %t", query, found)
		}
	}
	q := memory.LogQuery{Words: "needle filler nowhere nothing", Limit: 1, Chars: 2000}
	if finds, err := s.Search.History(t.Context(), c.Reader.Key, q); err != nil || len(finds.Events) != 1 || finds.Events[0].Seq != 9 {
		t.Errorf("events with half of the words are %.300v (%v), want the newest", finds, err)
	}
}

// Limits beyond all bounds list what there is, and those below nothing list nothing.
func TestAbsurdLimits(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u", false)
	for limit, want := range map[int]int{1 << 40: 2, -1: 0} {
		finds, err := s.Search.History(t.Context(), c.Reader.Key, memory.LogQuery{Limit: limit, Chars: limit})
		if err != nil || len(finds.Events) != want {
			t.Errorf("limit %d: history has %d events (%v), want %d", limit, len(finds.Events), err, want)
		}
		events, err := s.Search.Range(t.Context(), c.Reader.Key, 0, 9, limit)
		if err != nil || len(events) != want {
			t.Errorf("limit %d: the range has %d events (%v), want %d", limit, len(events), err, want)
		}
		if _, err := s.Facts.Pinned(t.Context(), c.Reader, limit); err != nil {
			t.Errorf("limit %d: %v", limit, err)
		}
		if _, err := s.Search.Search(t.Context(), c.Reader, memory.Query{Text: "hello", Limit: limit}); err != nil {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
}

// A memory and its source event are one hit, a corrected value comes last, and a private fact is found by its readers
// alone.
func TestSearchShowsAFactOnce(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "zhang", false) // events 1, 2
	c.Say("zhang", "发布日期是五月三日")                         // 3, 4
	c.Say("zhang", "午饭吃什么好呢")                           // 5, 6
	c.Say("zhang", "更正：发布日期改成五月九日")                     // 7, 8
	old, now := storetest.GroupFact(c, "发布日期是五月三日"), storetest.GroupFact(c, "发布日期是五月九日")
	old.StartSeq, old.EndSeq, old.Key = 3, 3, "发布日期"
	now.StartSeq, now.EndSeq, now.Key = 7, 7, "发布日期"
	c.Save(old)
	c.Save(now)
	storetest.Execute(t, pool, "UPDATE memories SET superseded_by = (SELECT max(id) FROM memories) WHERE content LIKE '%三日'")
	hits := c.Search("发布日期是哪天")
	if len(hits) < 2 || hits[0].MemoryID == 0 || hits[0].Content != "发布日期是五月九日" || len(hits[0].Why) == 0 {
		t.Fatalf("found %+v", hits)
	}
	for i, h := range hits {
		if h.Seq == 7 {
			t.Errorf("the event repeats the memory, and is a hit too: %+v", h)
		}
		if h.Seq == 3 && (!h.Outdated || i != len(hits)-1) {
			t.Errorf("what was corrected is find %d: %+v", i, h)
		}
		if strings.Contains(h.Content, "三日") && h.MemoryID != 0 {
			t.Errorf("a superseded memory is found: %+v", h)
		}
	}
	storetest.Execute(t, pool, "UPDATE memories SET expires_at = now() - interval '1 second'")
	for _, h := range c.Search("发布日期是哪天") {
		if h.MemoryID != 0 {
			t.Errorf("an expired memory is found: %+v", h)
		}
	}
}

// A turn is found at once, and an answer with its question.
func TestTurnsAreFound(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "zhang", false)
	a, err := s.Inbox.Accept(t.Context(), "a", c.Reader.Key, sessions.Message{
		RobotCode: storetest.Robot, ConversationID: "cid", ConversationType: sessions.Group, ID: "m", SenderID: "zhang", Text: "哪个端口？",
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Turns.Commit(t.Context(), c.Lease, sessions.TurnResult{
		Taken: []int64{a.EventID}, TakenTokens: []int{1},
		Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: "6380"}},
	}); err != nil {
		t.Fatal(err)
	}
	hits := c.Search("端口")
	if len(hits) != 2 || hits[0].Content != "哪个端口？" || hits[1].Content != "6380" {
		t.Errorf("found %+v", hits)
	}
}

// In a long session a frequent word is not followed to the last of its uses. The event is found all the same: by a
// rarer word, by two common ones that stand together, or, for one alone, the newest.
func TestSearchInALongSession(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "zhang", false)
	const said = 3000
	if err := storetest.Loader(t, pool).LoadEvents(t.Context(), func(yield func(yardstick.LoadedEvent) bool) {
		for i := range int64(said) {
			text := []string{"the weather is fine", "the budget is fixed"}[i%2]
			switch i {
			case 1500:
				text = "the weather eats the budget"
			case 1600:
				text = "the weather in Reykjavik"
			}
			if !yield(yardstick.LoadedEvent{Key: c.Reader.Key, Event: sessions.Event{
				Seq: i + 3, Role: sessions.RoleUser, SenderID: "zhang", Content: text, CreatedAt: time.Unix(i*7200, 0),
			}}) {
				return
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	storetest.Execute(t, pool, "UPDATE dingtalk_sessions SET last_seq = 3002")
	for query, want := range map[string]string{
		"weather and budget": "the weather eats the budget", "weather Reykjavik": "the weather in Reykjavik",
	} {
		if hits := c.Search(query); len(hits) == 0 || hits[0].Content != want {
			t.Errorf("%q finds %+v, want %q first", query, hits, want)
		}
	}
	hits := c.Search("what is the budget in Reykjavik?")
	if !slices.ContainsFunc(hits, func(h memory.Hit) bool { return h.Seq > said-10 }) {
		t.Errorf("found %+v, want the newest of the common word beside the rare one", hits)
	}
	if hits := c.Search("what of the budget?"); len(hits) == 0 || hits[0].Seq < said-10 {
		t.Errorf("of a word that everybody says found %+v, want the newest", hits)
	}
}
