package search_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
	"ebb/sql/yardstick"
)

// long is a text of about 5 KB with some words that all such texts have, and hundreds that are its own.
func long(i int, with string) string {
	var b strings.Builder
	b.WriteString("the budget of the gateway and its release plan " + with)
	for j := range 600 {
		fmt.Fprintf(&b, " w%dx%d", i, j)
	}
	return b.String()
}

// However long the messages of a session are, and however many have the words of a query, a search reads the best of
// them and finds what it looks for.
func TestSearchAmongLongMessages(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	c, read := storetest.Counting(t, url)
	_, pool := storetest.Open(t, url)
	texts := make([]string, 700)
	for i := range texts {
		texts[i] = long(i, "")
	}
	texts[50] = long(50, "for Reykjavik")
	c.Load(pool, texts...)
	storetest.Execute(t, pool, "UPDATE dingtalk_sessions SET last_seq = 702")
	before := read.Load()
	hits := c.Search("budget of the gateway release plan in Reykjavik")
	if len(hits) == 0 || hits[0].Seq != 53 {
		t.Errorf("found %.200v, want event 53 first", hits)
	}
	if n := read.Load() - before; n > 3<<20 {
		t.Errorf("a search read %d KB", n>>10)
	}
}

// An answer of a few words is found however many long messages came after it that have the same words.
func TestSearchForAShortMessageAmongLongOnes(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "zhang", false)
	texts := []string{"the staging gateway port is 8443"}
	for i := range 60 {
		texts = append(texts, "staging gateway port log dump "+long(i, ""))
	}
	c.Load(pool, texts...)
	storetest.Execute(t, pool, "UPDATE dingtalk_sessions SET last_seq = 100")
	hits := c.Search("which port has the staging gateway")
	if !slices.ContainsFunc(hits, func(h memory.Hit) bool { return h.Seq == 3 }) {
		t.Errorf("of %d finds none is event 3", len(hits))
	}
}

// An old fact is found by its rare word, however many newer ones have a common one: a group's, and what its people said
// of themselves.
func TestOldFactsAreStillFound(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "zhang", false)
	id := memory.GroupID(storetest.Robot, c.Reader.Conversation)
	facts := make([]memory.Memory, 2500)
	for i := range facts {
		facts[i] = memory.Memory{
			ID: int64(i) + 1, Scope: memory.ScopeGroup, ScopeID: id, Kind: memory.KindFact, SourceSession: c.Reader.Key,
			Content: fmt.Sprintf("budget item %d is approved", i), CreatedAt: time.Unix(int64(i), 0),
		}
	}
	facts[7].Content = "the budget for Reykjavik is denied"
	if err := storetest.Loader(t, pool).LoadMemories(t.Context(), facts); err != nil {
		t.Fatal(err)
	}
	found := func() {
		t.Helper()
		if hits := c.Search("budget of Reykjavik"); len(hits) == 0 || hits[0].MemoryID != 8 {
			t.Errorf("found %+v, want memory 8 first", hits)
		}
	}
	found()
	storetest.Execute(t, pool, "UPDATE memories SET scope = 'user', scope_id = 'zhang', subject_id = 'zhang', source_group = $1", id)
	found()
}

// No search finds a command, its answer, or an erased message; the bot's words are marked as the bot's.
func TestSearchOmitsCommandsAndErasedText(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "zhang", false) // events 1, 2
	turn := func(command bool, says, answer string) {
		t.Helper()
		c.Said++
		a, err := s.Inbox.Accept(t.Context(), "a", c.Reader.Key, sessions.Message{
			RobotCode: storetest.Robot, ConversationID: "cid", ConversationType: sessions.Group, ID: sessions.MessageID(says), SenderID: "zhang",
			SenderNick: "Zhang", Text: says,
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Turns.Commit(t.Context(), a.Lease, sessions.TurnResult{
			Taken: []int64{a.EventID}, TakenTokens: []int{1}, Command: command,
			Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: answer}},
		}); err != nil {
			t.Fatal(err)
		}
		c.Lease = a.Lease
	}
	turn(true, "/forget the harbour", "deleted: the harbour is closed")   // 3, 4
	turn(false, "how deep is the harbour?", "the harbour is nine metres") // 5, 6
	turn(false, "the harbour has an owner", "noted, the harbour")         // 7, 8
	if _, err := s.Erasure.Erase(t.Context(), c.Reader.Key, []int64{7, 8}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // with what was erased still to be indexed, and then indexed
		who := map[int64]string{}
		for _, query := range []string{"harbour", "erased", "已删除", "what did we talk about?", "1970"} {
			for _, h := range c.Search(query) {
				who[h.Seq] = h.Who
			}
		}
		if len(who) != 2 || who[5] != "Zhang(zhang)" || who[6] != "assistant" {
			t.Errorf("found events %v, want 5 of Zhang and 6 of the assistant", who)
		}
		for n := 1; n > 0; {
			var err error
			if n, err = s.Index.Logs.IndexSession(t.Context(), c.Reader.Key, 100); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := storetest.Number(t, pool, "SELECT count(*) FROM dingtalk_session_events e WHERE seq IN (3, 4, 7, 8) AND NOT searched"); n != 4 {
		t.Errorf("%d of four events are marked as no finds", n)
	}
	if n := storetest.Number(t, pool, "SELECT count(*) FROM event_terms WHERE seq IN (3, 4, 7, 8)"); n != 0 {
		t.Errorf("%d of four events have terms", n)
	}
}

// A list of a long log compares its newest part word by word, names the rest, and adds what the index finds there.
func TestHistoryOfALongLog(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "zhang", false)
	const said = 12000
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := storetest.Loader(t, pool).LoadEvents(t.Context(), func(yield func(yardstick.LoadedEvent) bool) {
		for i := range int64(said) {
			text := "the weather is fine"
			switch i {
			case 100:
				text = "the password of the quokka"
			case 200:
				text = "xquokkax"
			}
			if !yield(yardstick.LoadedEvent{Key: c.Reader.Key, Event: sessions.Event{
				Seq: i + 3, Role: sessions.RoleUser, SenderID: "zhang", Content: text, CreatedAt: begin.Add(time.Duration(i) * time.Minute),
			}}) {
				return
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	storetest.Execute(t, pool, "UPDATE dingtalk_sessions SET last_seq = 12002")
	seqs := func(q memory.LogQuery) (out []int64, from int64) {
		t.Helper()
		q.Limit, q.Chars = 5, 100
		finds, err := s.Search.History(t.Context(), c.Reader.Key, q)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range finds.Events {
			out = append(out, f.Seq)
		}
		return out, finds.From
	}
	for name, tt := range map[string]struct {
		q    memory.LogQuery
		want []int64
		from int64
	}{
		"the index adds old ones":      {memory.LogQuery{Words: "quokka"}, []int64{103}, 7003},
		"the next part":                {memory.LogQuery{Words: "quokka", Through: 7002}, []int64{103}, 2003},
		"the last part, word by word":  {memory.LogQuery{Words: "quokka", Through: 2002}, []int64{203, 103}, 0},
		"a range":                      {memory.LogQuery{Words: "quokka", From: 150, Through: 4000}, []int64{203}, 0},
		"a time":                       {memory.LogQuery{Words: "quokka", Until: begin.Add(150 * time.Minute)}, []int64{103}, 0},
		"a time without words":         {memory.LogQuery{Since: begin.Add(100 * time.Minute), Until: begin.Add(102 * time.Minute)}, []int64{104, 103}, 0},
		"nothing there":                {memory.LogQuery{Words: "quokka", From: 7100}, nil, 0},
		"the newest, as many as asked": {memory.LogQuery{Words: "weather"}, []int64{12002, 12001, 12000, 11999, 11998}, 7003},
	} {
		if got, from := seqs(tt.q); !slices.Equal(got, tt.want) || from != tt.from {
			t.Errorf("%s: found %v, compared from %d; want %v from %d", name, got, from, tt.want, tt.from)
		}
	}
}
