package sql_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ebb/memory"
	"ebb/memory/show"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/admin"
	"ebb/sql/sqltest"
)

const robot sessions.RobotCode = "robot"

// chat is a session with a living owner and what it says.
type chat struct {
	t      *testing.T
	store  *sql.Store
	lease  sessions.Lease
	reader memory.Reader
	said   int
}

func newChat(t *testing.T, s *sql.Store, conversation sessions.ConversationID, person sessions.UserID, private bool) *chat {
	t.Helper()
	c := &chat{t: t, store: s, reader: memory.Reader{
		Key: sessions.NewKey(robot, conversation, ""), Robot: robot, Conversation: conversation, Private: private,
		Users: []sessions.UserID{person},
	}}
	if _, err := s.Beat(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	c.say(person, "hello")
	return c
}

// say commits a turn in which a person says something and is answered with ok.
func (c *chat) say(person sessions.UserID, text string) { c.answer(person, text, sessions.Turn{}) }

func (c *chat) answer(person sessions.UserID, text string, t sessions.Turn) {
	c.t.Helper()
	c.said++
	a, err := c.store.Accept(c.t.Context(), "a", c.reader.Key, sessions.Message{
		RobotCode: robot, ConversationID: c.reader.Conversation, ConversationType: sessions.Group,
		ID: sessions.MessageID(fmt.Sprint(c.reader.Key, c.said)), SenderID: person, Text: text,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.lease = a.Lease
	t.Taken, t.TakenTokens = []int64{a.EventID}, []int{10}
	t.Events = []sessions.Event{{Role: sessions.RoleAssistant, Content: "ok", Tokens: 1}}
	if _, err := c.store.Commit(c.t.Context(), c.lease, t); err != nil {
		c.t.Fatal(err)
	}
}

// result commits a turn with a tool result in it and no person's message: the call, the result, the answer.
func (c *chat) result(body string) {
	c.t.Helper()
	if _, err := c.store.Commit(c.t.Context(), c.lease, sessions.Turn{Events: []sessions.Event{
		{Role: sessions.RoleAssistant, ToolCalls: []sessions.ToolCall{{ID: "c", Name: "n", Arguments: "{}"}}, Tokens: 2},
		{Role: sessions.RoleTool, ToolCallID: "c", ToolName: "n", Content: body, Tokens: 100},
		{Role: sessions.RoleAssistant, Content: "ok", Tokens: 1},
	}}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *chat) save(drafts ...memory.Draft) memory.Receipt {
	c.t.Helper()
	r, err := c.store.Save(c.t.Context(), c.lease, drafts)
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

func (c *chat) search(query string) []memory.Hit {
	c.t.Helper()
	hits, err := c.store.Search(c.t.Context(), c.reader, memory.Query{Text: query, Limit: 10})
	if err != nil {
		c.t.Fatal(err)
	}
	return hits
}

func group(c *chat, content string) memory.Draft {
	id := memory.GroupID(robot, c.reader.Conversation)
	return memory.Draft{Scope: memory.ScopeGroup, ScopeID: id, Kind: memory.KindFact, Content: content, SourceGroup: id}
}

// about is what a person said of themself in private.
func about(person sessions.UserID, content string) memory.Draft {
	return memory.Draft{
		Scope: memory.ScopeUser, ScopeID: string(person), Kind: memory.KindProfile, Content: content, SubjectID: person, SaidBy: person,
	}
}

// inGroup is a draft of something that was said in a chat's group.
func inGroup(c *chat, d memory.Draft) memory.Draft {
	d.SourceGroup = memory.GroupID(robot, c.reader.Conversation)
	return d
}

func TestSaveKnowsAFactAgain(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", "u1", false)
	first := c.save(group(c, "预算是 1.5 万，周五前定。"), group(c, "Release v1.2 on Friday"))
	if len(first.Saved) != 2 || len(first.Duplicate) != 0 {
		t.Fatalf("two new facts gave the receipt %+v", first)
	}
	for _, same := range []string{"预算是1.5万, 周五前定", "预算是 １.５ 万，周五前定！", "release  V1.2 on friday."} {
		r := c.save(group(c, same))
		if len(r.Saved) != 0 || len(r.Duplicate) != 1 || !slices.Contains(first.Saved, r.Duplicate[0]) {
			t.Errorf("%q gave the receipt %+v, want the row that holds it", same, r)
		}
	}
	for _, other := range []string{"预算是 15 万，周五前定。", "Release v12 on Friday", "Re lease v1.2 on Friday"} {
		if r := c.save(group(c, other)); len(r.Saved) != 1 {
			t.Errorf("%q was taken for a fact that it is not: %+v", other, r)
		}
	}
	if r := c.save(group(c, "twice"), group(c, "Twice!")); len(r.Saved) != 1 || len(r.Duplicate) != 0 {
		t.Errorf("one fact said twice at once gave %+v", r)
	}
	if r := c.save(); len(r.Saved)+len(r.Duplicate) != 0 {
		t.Errorf("nothing gave %+v", r)
	}
	execute(t, pool, "UPDATE memories SET superseded_by = id WHERE content = 'twice'")
	if r := c.save(group(c, "twice")); len(r.Saved) != 1 {
		t.Errorf("a fact that was superseded cannot be learnt again: %+v", r)
	}
	other := newChat(t, s, "cid2", "u1", false)
	if r := other.save(group(other, "twice")); len(r.Saved) != 1 {
		t.Errorf("another group's fact was taken for this one's: %+v", r)
	}
}

func TestFlushIsWhole(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", "u1", false)
	c.say("u1", "more")
	f := memory.Flush{From: 0, Through: 3, Last: true, Drafts: []memory.Draft{group(c, "one"), group(c, "two")}, Usage: sessions.Usage{Prompt: 9}}
	for name, bad := range map[string]memory.Flush{
		"another cursor": {From: 1, Through: 3, Drafts: f.Drafts},
		"beyond the log": {From: 0, Through: 5, Drafts: f.Drafts},
	} {
		if _, err := s.Flush(t.Context(), c.lease, bad); !errors.Is(err, sessions.ErrConflict) {
			t.Errorf("flushing from %s gave %v", name, err)
		}
	}
	broken := f
	broken.Drafts = append(slices.Clone(f.Drafts), memory.Draft{Scope: "nobody's", Content: "x"})
	if _, err := s.Flush(t.Context(), c.lease, broken); err == nil {
		t.Error("a flush with an unknown scope worked")
	}
	stale := c.lease
	stale.Term++
	if _, err := s.Flush(t.Context(), stale, f); !errors.Is(err, sessions.ErrLeaseLost) {
		t.Errorf("flushing under another term gave %v", err)
	}
	var n int
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM memories").Scan(&n); err != nil || n != 0 {
		t.Errorf("refused flushes left %d memories (%v)", n, err)
	}

	r, err := s.Flush(t.Context(), c.lease, f)
	if err != nil || len(r.Saved) != 2 {
		t.Fatalf("the flush gave %+v, %v", r, err)
	}
	v, err := s.Session(t.Context(), c.reader.Key)
	if err != nil || v.FlushedSeq != 3 || v.FlushEpoch != 0 || v.FlushCount != 1 || v.FlushFailures != 0 {
		t.Errorf("after the flush the session is %+v (%v)", v, err)
	}
	m, err := s.Pinned(t.Context(), c.reader, 10)
	if err != nil || len(m) != 2 || m[0].Content != "two" || m[0].StartSeq != 1 || m[0].EndSeq != 3 || m[0].SourceSession != c.reader.Key {
		t.Errorf("the memories are %+v (%v), want both, newest first, with their source", m, err)
	}
	if r, err := s.Flush(t.Context(), c.lease, memory.Flush{From: 3, Through: 3}); err != nil || len(r.Saved)+len(r.Duplicate) != 0 {
		t.Errorf("a flush that found nothing gave %+v, %v", r, err)
	}
}

// A flush that takes several calls of the model is one flush, and its cycle is flushed when all of it is.
func TestFlushInParts(t *testing.T) {
	t.Parallel()
	s, _ := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", "u1", false)
	c.say("u1", "more")
	flush := func(f memory.Flush, seq int64, epoch, count int) {
		t.Helper()
		if _, err := s.Flush(t.Context(), c.lease, f); err != nil {
			t.Fatal(err)
		}
		v, err := s.Session(t.Context(), c.reader.Key)
		if err != nil || v.FlushedSeq != seq || v.FlushEpoch != epoch || v.FlushCount != count {
			t.Errorf("flushed up to %d in cycle %d, %d times (%v), want up to %d in cycle %d, %d times",
				v.FlushedSeq, v.FlushEpoch, v.FlushCount, err, seq, epoch, count)
		}
	}
	flush(memory.Flush{From: 0, Through: 1, Epoch: 7}, 1, -1, 0)
	flush(memory.Flush{From: 1, Through: 2, Epoch: 7}, 2, -1, 0)
	flush(memory.Flush{From: 2, Through: 3, Epoch: 7, Last: true}, 3, 7, 1)
	flush(memory.Flush{From: 3, Through: 4, Epoch: 8, Last: true}, 4, 8, 2)
}

// A flush that was under way while the conversation was renewed is stored, and does not use up the new generation's
// own.
func TestFlushOfAnEndedGeneration(t *testing.T) {
	t.Parallel()
	s, _ := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", "u1", false)
	if err := s.Renew(t.Context(), c.lease); err != nil {
		t.Fatal(err)
	}
	c.say("u1", "more")
	for _, step := range []struct {
		flush      memory.Flush
		seq        int64
		epoch, got int
	}{
		{memory.Flush{Gen: 0, From: 0, Through: 2, Last: true, Drafts: []memory.Draft{group(c, "one")}}, 2, -1, 1},
		{memory.Flush{Gen: 1, From: 2, Through: 4, Last: true, Drafts: []memory.Draft{group(c, "two")}}, 4, 0, 1},
	} {
		r, err := s.Flush(t.Context(), c.lease, step.flush)
		if err != nil || len(r.Saved) != step.got {
			t.Errorf("flush %+v gave %+v (%v)", step.flush, r, err)
		}
		v, err := s.Session(t.Context(), c.reader.Key)
		if err != nil || v.FlushedSeq != step.seq || v.FlushEpoch != step.epoch {
			t.Errorf("after flush %+v the session is flushed up to %d, its cycle is %d (%v); want %d and %d",
				step.flush, v.FlushedSeq, v.FlushEpoch, err, step.seq, step.epoch)
		}
	}
}

func TestOwe(t *testing.T) {
	t.Parallel()
	s, _ := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", "u1", false)
	c.say("u1", "more")
	owe := func(through int64, failures int, reason string) {
		t.Helper()
		if err := s.Owe(t.Context(), c.lease, memory.Debt{Through: through, Failures: failures, Reason: reason, Usage: sessions.Usage{Prompt: 10, Completion: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	debts := func() []admin.Debt {
		t.Helper()
		list, err := s.Debts(t.Context(), nil, 10)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	owe(2, 1, "busy")
	owe(4, 2, "still busy")
	list := debts()
	if len(list) != 1 || list[0].From != 0 || list[0].Through != 4 || list[0].Failures != 2 || list[0].Reason != "still busy" {
		t.Fatalf("the debts are %+v, want one that replaced the other", list)
	}
	if v, err := s.Session(t.Context(), c.reader.Key); err != nil || v.FlushFailures != 2 || v.SpentToday != 22 {
		t.Errorf("the session counts %d failures and %d tokens (%v), want 2 and 22", v.FlushFailures, v.SpentToday, err)
	}
	flush := func(from, through int64) {
		t.Helper()
		if _, err := s.Flush(t.Context(), c.lease, memory.Flush{From: from, Through: through}); err != nil {
			t.Fatal(err)
		}
	}
	flush(0, 2)
	if list = debts(); len(list) != 1 || list[0].From != 2 || list[0].Through != 4 {
		t.Errorf("after half of it was flushed the debts are %+v", list)
	}
	flush(2, 4)
	if list = debts(); len(list) != 0 {
		t.Errorf("after all was flushed the debts are %+v", list)
	}
	owe(4, 1, "late")
	if list = debts(); len(list) != 0 {
		t.Errorf("owing a flushed range gave %+v", list)
	}
	if err := s.Owe(t.Context(), c.lease, memory.Debt{Through: 5, Failures: 1, Reason: "x"}); !errors.Is(err, sessions.ErrConflict) {
		t.Errorf("owing a missing range gave %v", err)
	}
	stale := c.lease
	stale.Owner = "b"
	if err := s.Owe(t.Context(), stale, memory.Debt{Through: 4, Failures: 1, Reason: "x"}); !errors.Is(err, sessions.ErrLeaseLost) {
		t.Errorf("owing under another's lease gave %v", err)
	}
}

func TestUnflushed(t *testing.T) {
	t.Parallel()
	s, _ := open(t, sqltest.URL(t))
	little, much, nothing := newChat(t, s, "little", "u", false), newChat(t, s, "much", "u", false), newChat(t, s, "nothing", "u", false)
	much.say("u", "more")
	if _, err := s.Flush(t.Context(), nothing.lease, memory.Flush{Through: 2}); err != nil {
		t.Fatal(err)
	}
	want := []memory.UnflushedSession{{Key: much.reader.Key, Tokens: 22}, {Key: little.reader.Key, Tokens: 11}}
	if got, err := s.Unflushed(t.Context(), "a"); err != nil || !slices.Equal(got, want) {
		t.Errorf("unflushed are %+v (%v), want %+v", got, err, want)
	}
	if got, err := s.Unflushed(t.Context(), "b"); err != nil || len(got) != 0 {
		t.Errorf("of a replica without sessions unflushed are %+v (%v)", got, err)
	}
}

// A person's private statement is never read out to other people, nor one group's to another.
func TestSearchKeepsScopes(t *testing.T) {
	t.Parallel()
	s, _ := open(t, sqltest.URL(t))
	private := newChat(t, s, "dm-zhang", "zhang", true)
	stranger := newChat(t, s, "dm-li", "li", true)
	first := newChat(t, s, "group-1", "zhang", false)
	second := newChat(t, s, "group-2", "zhang", false)
	private.say("zhang", "needle said in private")
	first.say("zhang", "needle said in group one")

	private.save(about("zhang", "needle: private fact about Zhang"))
	private.save(memory.Draft{Scope: memory.ScopeSession, ScopeID: string(private.reader.Key), Kind: memory.KindTask, Content: "needle: task of the private chat"})
	private.save(memory.Draft{Scope: memory.ScopeTeam, ScopeID: string(robot), Kind: memory.KindDecision, Content: "needle: team rule"})
	first.save(inGroup(first, about("zhang", "needle: said by Zhang in group one")), group(first, "needle: group one's fact"))
	first.save(inGroup(first, about("zhang", "needle: private fact about Zhang"))) // said in the group too

	for _, tt := range []struct {
		name string
		c    *chat
		want []string
	}{
		{"the person in private", private, []string{
			"needle said in private", "needle: private fact about Zhang", "needle: said by Zhang in group one",
			"needle: task of the private chat", "needle: team rule",
		}},
		{"another person in private", stranger, []string{"needle: team rule"}},
		{"the group where it was said", first, []string{
			"needle said in group one", "needle: group one's fact", "needle: private fact about Zhang",
			"needle: said by Zhang in group one", "needle: team rule",
		}},
		{"another group", second, []string{"needle: team rule"}},
	} {
		var got []string
		for _, h := range tt.c.search("needle") {
			got = append(got, h.Content)
		}
		slices.Sort(got)
		slices.Sort(tt.want)
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s finds %q, want %q", tt.name, got, tt.want)
		}
	}

	hits := private.search("private fact Zhang")
	if len(hits) == 0 || !strings.HasPrefix(hits[0].Path, "memory/user/") || hits[0].Who != "said by zhang" {
		t.Fatalf("the first find is %+v", hits)
	}
	if text, err := show.Get(t.Context(), s, private.reader, hits[0].Path, 1, show.LogReader{Location: time.UTC}); err != nil || !strings.Contains(text, hits[0].Content) {
		t.Errorf("the path leads to %q (%v)", text, err)
	}
	if text, err := show.Get(t.Context(), s, stranger.reader, hits[0].Path, 1, show.LogReader{Location: time.UTC}); err == nil {
		t.Errorf("another person reads the memory by its number: %q", text)
	}
}

func TestSearchRanks(t *testing.T) {
	t.Parallel()
	s, _ := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", "zhang", false)
	for _, text := range []string{"上海项目的预算是两百万", "北京的预算未定", "Order ORD-2041 ships to 上海 by Ｆｒｉｄａｙ", "100% done_it"} {
		c.say("zhang", text)
	}
	for query, want := range map[string]string{
		"上海预算":        "上海项目的预算是两百万",
		"上海的预算是多少？":   "上海项目的预算是两百万",
		"北京 预算":       "北京的预算未定",
		"ord-2041":    "Order ORD-2041 ships to 上海 by Ｆｒｉｄａｙ",
		"ORDER ships": "Order ORD-2041 ships to 上海 by Ｆｒｉｄａｙ",
		"DONE":        "100% done_it",
	} {
		hits := c.search(query)
		if len(hits) == 0 || hits[0].Content != want {
			t.Errorf("%q finds %+v, want %q first", query, hits, want)
			continue
		}
		if h := hits[0]; !strings.HasPrefix(h.Path, "session_events/") || h.Who != "zhang" || h.At.IsZero() || h.Score <= 0 || h.Score > 1 {
			t.Errorf("%q finds %+v", query, h)
		}
	}
	for _, query := range []string{"", "%", "_", "。，！", "完全不同", "%%'; DROP TABLE memories; --"} {
		if hits := c.search(query); len(hits) != 0 {
			t.Errorf("%q finds %+v", query, hits)
		}
	}
}

func TestHistoryAndRange(t *testing.T) {
	t.Parallel()
	s, _ := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", "zhang", false)
	for i := range 5 {
		c.say("zhang", fmt.Sprintf("第%d次 release", i))
	}
	if _, err := s.Compact(t.Context(), c.lease, summaryOf(0, 6, "早先的对话")); err != nil {
		t.Fatal(err)
	}
	history := func(query string, through int64, limit int) []int64 {
		t.Helper()
		events, err := s.History(t.Context(), c.reader.Key, memory.LogQuery{Words: query, Through: through, Limit: limit, Chars: 2000})
		if err != nil {
			t.Fatal(err)
		}
		var seqs []int64
		for _, e := range events.Events {
			seqs = append(seqs, e.Seq)
		}
		return seqs
	}
	if got := history("", 0, 3); !slices.Equal(got, []int64{12, 11, 10}) {
		t.Errorf("all history, newest first, is %v", got)
	}
	if got := history("RELEASE", 8, 2); !slices.Equal(got, []int64{7, 5}) {
		t.Errorf("releases up to 8 are %v, want 7 and the archived 5", got)
	}
	if got := history("nothing like it", 0, 5); len(got) != 0 {
		t.Errorf("words without an event are found at %v", got)
	}
	c.answer("zhang", "release 的会议", sessions.Turn{Command: true})
	if got := history("", 0, 3); !slices.Equal(got, []int64{12, 11, 10}) {
		t.Errorf("the history has a reminder: %v", got)
	}
	if got := history("会议", 0, 3); len(got) != 0 {
		t.Errorf("a search finds a reminder: %v", got)
	}
	if whole, err := s.Range(t.Context(), c.reader.Key, 12, 14, 4); err != nil || len(whole) != 2 {
		t.Errorf("the range of the reminder is %+v (%v)", whole, err)
	}
	events, err := s.Range(t.Context(), c.reader.Key, 2, 7, 4)
	if err != nil || len(events) != 4 || events[0].Seq != 3 || events[3].Seq != 6 || !events[0].Archived {
		t.Errorf("the range is %+v (%v), want 3 to 6, archived", events, err)
	}
}

func TestListsForAdmins(t *testing.T) {
	t.Parallel()
	s, _ := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", "zhang", false)
	newer := newChat(t, s, "cid2", "zhang", false)
	list, err := s.Sessions(t.Context(), 10)
	if err != nil || len(list) != 2 || list[0].Key != newer.reader.Key || list[1].Lease != c.lease {
		t.Errorf("the sessions are %+v (%v), want the last active first", list, err)
	}
	if _, err := s.Session(t.Context(), "nobody"); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("a session that is not there gave %v", err)
	}
	compaction := summaryOf(0, 1, "s")
	compaction.Log = sessions.LogEntry{Trigger: "manual", TokensBefore: 100, TokensAfter: 40, Audit: `{"ids": 3}`, FlushOutcome: "saved", Cost: 0.5}
	if _, err := s.Compact(t.Context(), c.lease, compaction); err != nil {
		t.Fatal(err)
	}
	if err := s.Log(t.Context(), newer.lease, sessions.LogEntry{Outcome: "rejected", Error: "too short", Failures: 1}); err != nil {
		t.Fatal(err)
	}
	all, err := s.Compactions(t.Context(), "", 10)
	if err != nil || len(all) != 2 || all[0].Outcome != "rejected" || all[0].Error != "too short" {
		t.Errorf("all attempts are %+v (%v), want the newest first", all, err)
	}
	one, err := s.Compactions(t.Context(), c.reader.Key, 10)
	if err != nil || len(one) != 1 || one[0].Outcome != "committed" || one[0].TokensBefore != 100 || one[0].TokensAfter != 40 ||
		one[0].StartSeq != 1 || one[0].EndSeq != 1 || one[0].Audit != `{"ids": 3}` || one[0].FlushOutcome != "saved" || one[0].Cost != 0.5 {
		t.Errorf("the session's attempts are %+v (%v)", one, err)
	}
	first, err := s.Events(t.Context(), c.reader.Key, 0, 1)
	if err != nil || len(first) != 1 {
		t.Fatalf("the first event is %+v (%v)", first, err)
	}
	rest, err := s.Events(t.Context(), c.reader.Key, first[0].ID, 10)
	if err != nil || len(rest) == 0 || rest[0].ID <= first[0].ID {
		t.Errorf("the events after it are %+v (%v)", rest, err)
	}
	if e, err := s.Compaction(t.Context(), all[0].ID); err != nil || e.Error != "too short" {
		t.Errorf("compaction %d is %+v (%v)", all[0].ID, e, err)
	}
	if _, err := s.Compaction(t.Context(), 1<<40); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("a compaction that is not there gave %v", err)
	}
}
