package facts_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ebb/memory"
	"ebb/memory/draft"
	"ebb/memory/show"
	"ebb/sessions"
	"ebb/sql/facts"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

var morning = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

// at is a draft of a statement a number of hours after that morning.
func at(hours int, d memory.Draft) memory.Draft {
	d.SaidAt = morning.Add(time.Duration(hours) * time.Hour)
	return d
}

func keyed(key string, d memory.Draft) memory.Draft { d.Key = key; return d }

func wantKnown(c *storetest.Chat, want ...string) {
	c.T.Helper()
	if got := c.Known(); !slices.Equal(got, want) {
		c.T.Errorf("known is %q, want %q", got, want)
	}
}

func TestNearDuplicatesAreMerged(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u1", false)
	first := c.Save(at(0, storetest.GroupFact(c, "The release of project Orion is planned for Friday in Shanghai")))
	same := at(2, storetest.GroupFact(c, "The release of project Orion was planned for Friday in Shanghai"))
	for range 2 { // to read the same saying again counts nothing
		if r := c.Save(same); len(r.Saved) != 0 || !slices.Equal(r.Duplicate, first.Saved) {
			t.Errorf("a near duplicate gave %+v", r)
		}
	}
	list, err := s.Facts.Pinned(t.Context(), c.Reader, 10)
	if err != nil || len(list) != 1 || list[0].Seen != 2 || !list[0].LastSeenAt.Equal(same.SaidAt) {
		t.Errorf("known is %+v (%v), want one memory that was said twice, last at %v", list, err, same.SaidAt)
	}
	for _, other := range []string{
		"The release of project Orion is planned for Monday in Shanghai", "The release of project Orion-2 is planned for Friday in Shanghai",
		"The release of project Orion is not planned for Friday in Shanghai",
	} {
		if r := c.Save(at(3, storetest.GroupFact(c, other))); len(r.Saved) != 1 {
			t.Errorf("%q was taken for a duplicate: %+v", other, r)
		}
	}
}

// A newer value of a key, a correction by number and one by its words take the old value out of force. The old value
// can still be read by its number.
func TestCorrectionsSupersede(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u1", false)
	v1 := c.Save(at(0, keyed("Release date", storetest.GroupFact(c, "we ship on 2026-12-01")))).Saved[0]
	r := c.Save(at(1, keyed("release_date", storetest.GroupFact(c, "shipping is on 2026-12-05"))))
	if len(r.Saved) != 1 || !slices.Equal(r.Superseded, []int64{v1}) {
		t.Fatalf("another value of a key gave %+v", r)
	}
	wantKnown(c, "shipping is on 2026-12-05")
	r2 := c.Save(at(2, storetest.Replacing(v1, storetest.GroupFact(c, "no ship before 2026-12-09")))) // an old number leads to the value in force
	if !slices.Equal(r2.Superseded, r.Saved) {
		t.Errorf("a correction by number gave %+v", r2)
	}
	wantKnown(c, "no ship before 2026-12-09")
	c.Save(at(3, storetest.GroupFact(c, "周会在周三")))
	if r := c.Save(at(4, storetest.GroupFact(c, "周会改为周四"))); len(r.Superseded) != 1 {
		t.Errorf("a correction by its words gave %+v", r)
	}
	wantKnown(c, "周会改为周四", "no ship before 2026-12-09")

	values, err := s.Facts.Values(t.Context(), c.Reader, v1)
	if err != nil || len(values) != 3 || values[0].ID != v1 || values[0].SupersededBy != r.Saved[0] || values[2].SupersededBy != 0 {
		t.Errorf("the values are %+v (%v), want all three, linked, oldest first", values, err)
	}
	stranger := storetest.NewChat(t, s, "cid2", "u1", false)
	if values, err := s.Facts.Values(t.Context(), stranger.Reader, v1); err != nil || len(values) != 0 {
		t.Errorf("another group reads the values %+v (%v)", values, err)
	}
}

// A statement about one person does not correct one about another, nor does one group's correct another's.
func TestCorrectionsStayInTheirPlace(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	c, other := storetest.NewChat(t, s, "cid", "u1", false), storetest.NewChat(t, s, "cid2", "u1", false)
	of := func(person sessions.UserID, content string) memory.Draft {
		d := keyed("phone", storetest.GroupFact(c, content))
		d.SubjectID = person
		return d
	}
	mine := c.Save(of("u1", "phone of u1: 111")).Saved[0]
	c.Save(of("u2", "phone of u2: 222"))
	other.Save(keyed("phone", storetest.GroupFact(other, "phone here: 333")))
	r := other.Save(storetest.Replacing(mine, storetest.GroupFact(other, "phone there: 444")), storetest.GroupFact(other, "Postgres was chosen"))
	if !slices.Equal(r.Unknown, []int64{mine}) || len(r.Saved) != 1 || len(r.Superseded) != 0 {
		t.Errorf("to replace another group's memory gave %+v", r)
	}
	wantKnown(c, "phone of u2: 222", "phone of u1: 111")
	wantKnown(other, "Postgres was chosen", "phone here: 333")
	// A flush stores the fact all the same: it has no reader for a refusal.
	f, err := s.Flushes.Flush(t.Context(), other.Lease, memory.Flush{Through: 2, Drafts: []memory.Draft{storetest.Replacing(mine, storetest.GroupFact(other, "phone there: 444"))}})
	if err != nil || len(f.Saved) != 1 || len(f.Superseded) != 0 {
		t.Errorf("the flush gave %+v (%v)", f, err)
	}
	wantKnown(c, "phone of u2: 222", "phone of u1: 111")
}

// A person's private statement is corrected by their statement in a group, but the group learns nothing of it.
func TestPrivateMemoryIsCorrectedQuietly(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	private, c := storetest.NewChat(t, s, "dm", "zhang", true), storetest.NewChat(t, s, "cid", "zhang", false)
	old := private.Save(at(0, keyed("city", storetest.FactAbout("zhang", "lives in Wuhan")))).Saved[0]
	if r := c.Save(at(1, storetest.Replacing(old, storetest.InGroup(c, storetest.FactAbout("zhang", "moved to Xian last year"))))); !slices.Equal(r.Unknown, []int64{old}) {
		t.Errorf("a group replaced a private memory by its number: %+v", r)
	}
	if r := c.Save(at(1, keyed("city", storetest.InGroup(c, storetest.FactAbout("zhang", "lives in Xian"))))); len(r.Saved) != 1 || len(r.Superseded) != 0 {
		t.Errorf("the group reads %+v", r)
	}
	wantKnown(private, "lives in Xian")
}

// An earlier statement does not supersede a later one, though it is read later: it becomes history. A repeated read of
// everything changes nothing.
func TestOrderIsOfTheSaying(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u1", false)
	said := []memory.Draft{
		at(1, keyed("owner", storetest.GroupFact(c, "Alice owns billing"))), at(3, keyed("owner", storetest.GroupFact(c, "Carol owns billing"))),
		at(2, keyed("owner", storetest.GroupFact(c, "Bob owns billing"))), at(0, keyed("owner", storetest.GroupFact(c, "Dave owns billing"))),
	}
	c.Save(said[0])
	c.Save(said[1:]...)
	wantKnown(c, "Carol owns billing")
	rows := func() (n int) {
		if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM memories").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := rows(); n != 4 {
		t.Errorf("there are %d rows, want all four, three of them history", n)
	}
	for range 2 {
		if r := c.Save(said...); len(r.Saved) != 0 || len(r.Superseded) != 0 || len(r.Duplicate) != 4 {
			t.Errorf("the same again gave %+v", r)
		}
	}
	if n := rows(); n != 4 {
		t.Errorf("after reading it again there are %d rows", n)
	}
	if r := c.Save(at(5, keyed("owner", storetest.GroupFact(c, "Alice owns billing")))); len(r.Saved) != 1 || len(r.Superseded) != 1 {
		t.Errorf("an old value that holds again gave %+v", r)
	}
	wantKnown(c, "Alice owns billing")
}

// A flush leaves a receipt for each part, and the compaction that follows in its cycle names the newest.
func TestFlushesAreReceipted(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u1", false)
	c.Say("u1", "more")
	flush := func(f memory.Flush) memory.Receipt {
		t.Helper()
		r, err := s.Flushes.Flush(t.Context(), c.Lease, f)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	old := flush(memory.Flush{From: 0, Through: 1, Trigger: "threshold", Drafts: []memory.Draft{at(0, keyed("owner", storetest.GroupFact(c, "Alice owns billing")))}}).Saved[0]
	flush(memory.Flush{
		From: 1, Through: 2, Trigger: "threshold", Last: true, Model: "m", Usage: sessions.Usage{Prompt: 7, Completion: 3},
		Drafts: []memory.Draft{at(1, keyed("owner", storetest.GroupFact(c, "Bob owns billing"))), at(0, storetest.GroupFact(c, "Alice owns billing"))},
	})
	list := storetest.FlushesOf(t, pool, c.Reader.Key)
	if len(list) != 2 {
		t.Fatalf("the receipts are %+v", list)
	}
	if f := list[0]; f.Trigger != "threshold" || f.FromSeq != 1 || f.ThroughSeq != 2 || f.Model != "m" || f.PromptTokens != 7 || f.CompletionTokens != 3 ||
		len(f.Saved) != 1 || !slices.Equal(f.Duplicate, []int64{old}) || !slices.Equal(f.Superseded, []int64{old}) {
		t.Errorf("the receipt is %+v", f)
	}
	linked := func() (id *int64) {
		if err := pool.QueryRow(t.Context(), "SELECT flush_id FROM compaction_log ORDER BY id DESC LIMIT 1").Scan(&id); err != nil {
			t.Fatal(err)
		}
		return id
	}
	if err := s.Compactions.Log(t.Context(), c.Lease, sessions.LogEntry{Outcome: "failed", Error: "busy"}); err != nil {
		t.Fatal(err)
	}
	if id := linked(); id != nil {
		t.Errorf("an attempt that failed is linked to flush %d", *id)
	}
	if _, err := s.Compactions.Compact(t.Context(), c.Lease, storetest.SummaryOf(0, 2, "早先的对话")); err != nil {
		t.Fatal(err)
	}
	if id := linked(); id == nil || *id != list[0].ID {
		t.Errorf("the compaction is linked to flush %v, want %d", id, list[0].ID)
	}
	if _, err := s.Compactions.Compact(t.Context(), c.Lease, storetest.SummaryOf(2, 3, "后来的对话")); err != nil {
		t.Fatal(err)
	}
	if id := linked(); id != nil {
		t.Errorf("a compaction of a cycle without a flush is linked to flush %d", *id)
	}
}

// The oldest facts of an overfull scope are consolidated, all or nothing; they stay as history.
func TestConsolidate(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	c, other := storetest.NewChat(t, s, "cid", "u1", false), storetest.NewChat(t, s, "cid2", "u1", false)
	for i := range 6 {
		c.Save(at(i, storetest.GroupFact(c, fmt.Sprintf("parcel %d waits in the yard", i))))
	}
	other.Save(storetest.GroupFact(other, "Carol owns billing"))
	overfull, err := s.FactUpkeep.OverfullScopes(t.Context(), 5, memory.OverfullScope{})
	if err != nil || len(overfull) != 1 || overfull[0].Held != 6 || overfull[0].Scope != memory.ScopeGroup {
		t.Fatalf("overfull are %+v (%v)", overfull, err)
	}
	piles, err := s.FactUpkeep.FactGroups(t.Context(), overfull[0])
	if err != nil || len(piles) != 1 || piles[0].Held != 6 || piles[0].Session != c.Reader.Key {
		t.Fatalf("the scope falls into %+v (%v)", piles, err)
	}
	old, err := s.FactUpkeep.Oldest(t.Context(), piles[0], 4)
	if err != nil || len(old) != 4 || old[0].Content != "parcel 0 waits in the yard" {
		t.Fatalf("the oldest are %+v (%v)", old, err)
	}
	short := []memory.Draft{storetest.GroupFact(c, "parcels 0, 1, 2 and 3 wait in the yard")}
	r, err := s.FactUpkeep.Consolidate(t.Context(), old, short)
	if err != nil || len(r.Saved) != 1 || len(r.Superseded) != 4 {
		t.Fatalf("consolidating gave %+v (%v)", r, err)
	}
	wantKnown(c, "parcels 0, 1, 2 and 3 wait in the yard", "parcel 5 waits in the yard", "parcel 4 waits in the yard")
	if hits := c.Search("parcels yard"); len(hits) == 0 || hits[0].MemoryID != r.Saved[0] {
		t.Errorf("found is %+v, want the new memory first", hits)
	}
	if _, err := s.FactUpkeep.Consolidate(t.Context(), old, []memory.Draft{storetest.GroupFact(c, "parcels are gone")}); !errors.Is(err, sessions.ErrConflict) {
		t.Errorf("to consolidate the same again gave %v", err)
	}
	wantKnown(c, "parcels 0, 1, 2 and 3 wait in the yard", "parcel 5 waits in the yard", "parcel 4 waits in the yard")
	if overfull, err := s.FactUpkeep.OverfullScopes(t.Context(), 5, memory.OverfullScope{}); err != nil || len(overfull) != 0 {
		t.Errorf("overfull are still %+v (%v)", overfull, err)
	}
}

// Overfull scopes are listed the fullest first, each once, however the list is cut; and what one holds falls into piles by
// the person, those of one fact left out.
func TestOverfull(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	var wanted []memory.OverfullScope
	for i, held := range []int{5, 4, 4, 2} {
		c := storetest.NewChat(t, s, sessions.ConversationID(fmt.Sprint("cid", i)), "u1", false)
		for j := range held {
			d := at(j, storetest.GroupFact(c, fmt.Sprintf("parcel %d%d waits in the yard", i, j)))
			d.SubjectID = sessions.UserID([]string{"ann", "bob", "ann", "cid", "ann"}[j])
			c.Save(d)
		}
		if held > 3 {
			wanted = append(wanted, memory.OverfullScope{Scope: memory.ScopeGroup, ScopeID: string(c.Reader.Key), Held: held})
		}
	}
	all, err := s.FactUpkeep.OverfullScopes(t.Context(), 3, memory.OverfullScope{})
	if err != nil || !slices.Equal(all, wanted) {
		t.Fatalf("overfull are %+v (%v), want %+v", all, err, wanted)
	}
	for i, scope := range wanted {
		if rest, err := s.FactUpkeep.OverfullScopes(t.Context(), 3, scope); err != nil || !slices.Equal(rest, wanted[i+1:]) {
			t.Errorf("behind %+v are %+v (%v)", scope, rest, err)
		}
	}
	if piles, err := s.FactUpkeep.FactGroups(t.Context(), wanted[0]); err != nil || len(piles) != 1 || piles[0].Subject != "ann" || piles[0].Held != 3 {
		t.Errorf("piles are %+v (%v), want that of ann alone", piles, err)
	}
}

// P73, P90: for any speakers, places and labels of a model, a person's private statement is in no read of a group or of
// another person. No fact about a person is stored that they did not state themselves.
func TestPrivateStatementsStayPrivate(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	people := []sessions.UserID{"ann", "bob", "cid"}
	round, failed := 0, false
	rapid.Check(t, func(rt *rapid.T) {
		// Every round is a hundred statements of a database: a few are enough, but for shrinking.
		if round++; round > 20 && !failed {
			return
		}
		storetest.Execute(t, pool, "DELETE FROM memories")
		var chats []*storetest.Chat
		for _, p := range people {
			chats = append(chats, storetest.NewChat(t, s, sessions.ConversationID(fmt.Sprintf("dm-%s-%d", p, round)), p, true))
		}
		for i := range 2 {
			chats = append(chats, storetest.NewChat(t, s, sessions.ConversationID(fmt.Sprintf("group-%d-%d", i, round)), "ann", false))
		}
		secrets := map[int][]string{} // by private chat
		for i := range rapid.IntRange(1, 12).Draw(rt, "facts") {
			at := rapid.IntRange(0, len(chats)-1).Draw(rt, "chat")
			who := rapid.SampledFrom(people).Draw(rt, "speaker")
			if at < len(people) {
				who = people[at]
			}
			word := fmt.Sprintf("needle%03dx%02d", round, i)
			c := chats[at]
			c.Say(who, "I keep "+word+" at home")
			if at < len(people) {
				secrets[at] = append(secrets[at], word)
			}
			name := rapid.SampledFrom([]string{"", "ann", "bob", "cid", "team", memory.GroupID(storetest.Robot, chats[3].Reader.Conversation)})
			fact := memory.Fact{
				Content: string(who) + " keeps " + word + " at home", Subject: name.Draw(rt, "subject"), By: name.Draw(rt, "by"),
				Kind: memory.Kind(rapid.SampledFrom([]string{"fact", "profile", "preference", "decision", "task"}).Draw(rt, "kind")),
				Key:  rapid.SampledFrom([]string{"", "place"}).Draw(rt, "key"), Replaces: int64(rapid.IntRange(0, 30).Draw(rt, "replaces")),
			}
			keepAs(t, c, fact)
		}
		for reader, c := range chats {
			texts := readAll(t, c)
			for owner, words := range secrets {
				for _, word := range words {
					if owner != reader && strings.Contains(texts, word) {
						failed = true
						rt.Fatalf("a private statement of %s is read in chat %d: %s", people[owner], reader, texts)
					}
				}
			}
		}
		var stray int
		if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM memories WHERE scope = 'user' AND (scope_id <> said_by OR subject_id <> said_by)").Scan(&stray); err != nil || stray != 0 {
			failed = true
			rt.Fatalf("%d memories landed with somebody who did not say them (%v)", stray, err)
		}
	})
}

// keepAs stores a fact as a turn or a flush of the chat would.
func keepAs(t *testing.T, c *storetest.Chat, f memory.Fact) {
	t.Helper()
	session, err := c.Store.Sessions.Session(t.Context(), c.Reader.Key)
	if err != nil {
		t.Fatal(err)
	}
	if session.ConversationType = sessions.Group; c.Reader.Private {
		session.ConversationType = sessions.Private
	}
	events, err := c.Store.Search.Range(t.Context(), c.Reader.Key, 0, session.LastSeq, 100)
	if err != nil {
		t.Fatal(err)
	}
	drafts, _ := draft.Route([]memory.Fact{f}, draft.ChatOf(session, events))
	c.Save(drafts...)
}

// readAll is everything that a chat's reader gets out of the memory, by every way that there is.
func readAll(t *testing.T, c *storetest.Chat) string {
	t.Helper()
	ctx, s := t.Context(), c.Store
	r := c.Reader
	if !r.Private {
		r.Users = nil
	}
	var b strings.Builder
	hits, err := s.Search.Search(ctx, r, memory.Query{Text: "needle keeps home place", Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hits {
		b.WriteString(h.Content + "\n")
	}
	pinned, err := s.Facts.Pinned(ctx, r, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range pinned {
		b.WriteString(m.Content + "\n")
	}
	all, _, err := s.Facts.Memories(ctx, facts.MemoryFilter{}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all { // a guessed number
		for _, path := range []string{"MEMORY.md", fmt.Sprintf("memory/%s/%s.md#%d", m.Scope, m.CreatedAt.UTC().Format(time.DateOnly), m.ID)} {
			if text, err := show.Get(ctx, storetest.Library{Store: s.Facts, Digests: s.Digests}, r, path, 1, show.LogReader{Location: time.UTC}); err == nil {
				b.WriteString(text + "\n")
			}
		}
	}
	history, err := s.Search.History(ctx, r.Key, memory.LogQuery{Words: "needle", Limit: 100, Chars: 2000})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range history.Events {
		b.WriteString(e.Content + "\n")
	}
	return b.String()
}
