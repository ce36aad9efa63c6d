package erasure_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// A reply that waits to be sent loses what it quotes of an erased message or fact, and the rest of it is sent.
func TestWaitingRepliesLoseErasedWords(t *testing.T) {
	t.Parallel()
	s, pool, c := storetest.OpenChat(t)
	said := c.Speak("z1", storetest.ZhangID, storetest.ZhangNick, "我的储物柜是 KZ-88213", nil)
	c.Turn(storetest.ZhangID, storetest.ZhangNick, "好的", said) // 3 and 4
	c.Exchange(storetest.ZhangID, "我住在静安寺旁边", "好的")            // 5 and 6
	fact := c.Save(storetest.SaidBy(c, "张伟伟住在静安寺旁边", storetest.ZhangID, 5)).Saved[0]
	reply := func(id, text string) {
		asked := c.Speak(id, storetest.LiID, "李娜", "/status", nil)
		storetest.Must[sessions.Committed](t)(s.Turns.Commit(t.Context(), asked.Lease, sessions.TurnResult{
			Taken: []int64{asked.EventID}, TakenTokens: []int{1}, Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: "-", Tokens: 1}},
			Reply: &sessions.Reply{Text: text, Nonce: id}, ReplyWaits: true,
		}))
	}
	reply("l1", "已记住：张伟伟住在静安寺旁边\n会议在周三")
	reply("l2", "收到「我的储物柜是 KZ-88213」\n发布在周五")
	reply("l3", "与此无关")
	forget(c, fact, storetest.ZhangID, true)
	storetest.Must[memory.Forgotten](t)(s.Erasure.ForgetMessage(t.Context(), said.EventID, memory.Asking{Lease: sessions.Lease{Key: c.Reader.Key}}))
	open := strings.Join(storetest.Collect(t, pool, "SELECT body FROM outbox WHERE state IN ('sending', 'waiting') ORDER BY id", pgx.RowTo[string]), "|")
	for _, word := range []string{"静安寺", "88213"} {
		if strings.Contains(open, word) {
			t.Errorf("%s is still to be sent: %s", word, open)
		}
	}
	for _, rest := range []string{"会议在周三", "发布在周五", "与此无关"} {
		if !strings.Contains(open, rest) {
			t.Errorf("%s is not sent any more: %s", rest, open)
		}
	}
}

// The words of a deleted fact leave the waiting replies of the conversations that may read it, and no others.
func TestWaitingRepliesOfOtherConversations(t *testing.T) {
	t.Parallel()
	const words = "张伟伟住在静安寺旁边"
	s, pool := storetest.Open(t, sqltest.URL(t))
	for _, scope := range []memory.Scope{memory.ScopeGroup, memory.ScopeTeam} {
		here, there := storetest.NewChat(t, s, sessions.ConversationID("here-"+scope), storetest.LiID, false), storetest.NewChat(t, s, sessions.ConversationID("there-"+scope), storetest.LiID, false)
		here.Exchange(storetest.ZhangID, words, "好的")
		fact := storetest.GroupFact(here, words)
		fact.SaidBy, fact.StartSeq, fact.EndSeq = storetest.ZhangID, 1, 1
		if scope == memory.ScopeTeam {
			fact.Scope, fact.ScopeID = scope, string(storetest.Robot)
		}
		id := here.Save(fact).Saved[0]
		for _, c := range []*storetest.Chat{here, there} {
			asked := c.Speak("asked", storetest.LiID, "李娜", "/status", nil)
			storetest.Must[sessions.Committed](t)(s.Turns.Commit(t.Context(), asked.Lease, sessions.TurnResult{
				Taken: []int64{asked.EventID}, TakenTokens: []int{1}, Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: "-", Tokens: 1}},
				Reply: &sessions.Reply{Text: words + "，会议在周三", Nonce: "asked-" + string(c.Reader.Key)}, ReplyWaits: true,
			}))
		}
		forget(here, id, storetest.ZhangID, true)
		for c, kept := range map[*storetest.Chat]bool{here: false, there: scope == memory.ScopeGroup} {
			bodies := storetest.Collect(t, pool, fmt.Sprintf("SELECT body FROM outbox WHERE session_key = '%s' AND nonce LIKE 'asked-%%'", c.Reader.Key), pgx.RowTo[string])
			if len(bodies) != 1 || strings.Contains(bodies[0], words) != kept || !strings.Contains(bodies[0], "会议在周三") {
				t.Errorf("a fact of the %s is deleted, in %s %q waits; words kept: want %t", scope, c.Reader.Key, bodies, kept)
			}
		}
	}
}

// A member takes no words from others' replies by an erasure of a message of these words. A common word stays, and so
// does a sentence that others said too, or that a reply had before the message.
func TestWaitingRepliesKeepOthersWords(t *testing.T) {
	t.Parallel()
	s, pool, c := storetest.OpenChat(t)
	var replies []int64
	reply := func(id, text string) {
		asked := c.Speak(id, storetest.LiID, "李娜", "/status", nil)
		done := storetest.Must[sessions.Committed](t)(s.Turns.Commit(t.Context(), asked.Lease, sessions.TurnResult{
			Taken: []int64{asked.EventID}, TakenTokens: []int{1}, Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: "-", Tokens: 1}},
			Reply: &sessions.Reply{Text: text, Nonce: id}, ReplyWaits: true,
		}))
		replies = append(replies, done.Replies[0].ID)
	}
	c.Exchange(storetest.LiID, "通知：新版本发布在周五下午", "好的")
	reply("l1", "评审会议改到了周四上午")
	said := map[string]sessions.Accepted{}
	for i, text := range []string{"项目进度", "deadline", "新版本发布在周五下午", "评审会议改到了周四上午", "我的储物柜是 KZ-88213"} {
		said[text] = c.Speak(fmt.Sprint("z", i), storetest.ZhangID, storetest.ZhangNick, text, nil)
		c.Turn(storetest.ZhangID, storetest.ZhangNick, "好的", said[text])
	}
	reply("l2", "项目进度正常，deadline 不变。")
	reply("l3", "新版本发布在周五下午。")
	reply("l4", "储物柜是 KZ-88213，勿外传。")
	for text, m := range said {
		if _, err := s.Erasure.ForgetMessage(t.Context(), m.EventID, memory.Asking{Lease: sessions.Lease{Key: c.Reader.Key}}); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	var got []string
	for _, id := range replies {
		got = append(got, storetest.Collect(t, pool, fmt.Sprint("SELECT body FROM outbox WHERE id = ", id), pgx.RowTo[string])...)
	}
	if len(got) != 4 || got[0] != "评审会议改到了周四上午" || got[1] != "项目进度正常，deadline 不变。" || got[2] != "新版本发布在周五下午。" ||
		strings.Contains(got[3], "88213") {
		t.Errorf("the replies are %q", got)
	}
}

// A reply loses words between two of its parts: the rest is sent from its first part, under another key, and is in
// doubt. Neither the parts that arrived of the former text count for it, nor the result of the running try.
func TestTrimmedReplyIsSentWhole(t *testing.T) {
	t.Parallel()
	s, pool, c := storetest.OpenChat(t)
	c.Exchange(storetest.ZhangID, "我住在静安寺旁边", "好的") // 3 and 4
	fact := c.Save(storetest.SaidBy(c, "张伟伟住在静安寺旁边", storetest.ZhangID, 3)).Saved[0]
	asked := c.Speak("l1", storetest.LiID, "李娜", "会议", nil)
	committed := storetest.Must[sessions.Committed](t)(s.Turns.Commit(t.Context(), asked.Lease, sessions.TurnResult{
		Taken: []int64{asked.EventID}, TakenTokens: []int{1}, Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: "-", Tokens: 1}},
		Reply: &sessions.Reply{Text: "张伟伟住在静安寺旁边\n会议在周三", Nonce: "ebb-l1"},
	}))
	reply, lease := committed.Replies[0], asked.Lease
	claim := func(part int) sessions.Outgoing {
		list := storetest.Must[[]sessions.Outgoing](t)(s.Outbox.Claim(t.Context(), lease, sessions.SendAttempt{IDs: []int64{reply.ID}, Part: part, Nonce: "ebb-l1"}))
		if len(list) != 1 {
			t.Fatalf("claimed are %+v", list)
		}
		return list[0]
	}
	before := claim(1)
	storetest.Execute(t, pool, "UPDATE outbox SET next_at = next_at - interval '1 second' * $1::float8", sessions.SendTime.Seconds()) // the erasure does not wait for it
	forget(c, fact, storetest.ZhangID, true)
	lease = storetest.Must[sessions.Lease](t)(s.Leases.Acquire(t.Context(), lease.Key, lease.Owner))
	err := s.Outbox.Settle(t.Context(), sessions.SendOutcome{Key: lease.Key, ID: reply.ID, Attempt: before.Attempts, Part: 2})
	if !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("the outcome of the former text is kept: %v", err)
	}
	if got := claim(2); got.Part != 0 || !got.Maybe || got.Reply.Nonce == "ebb-l1" || !strings.HasPrefix(got.Reply.Nonce, "ebb-") || strings.Contains(got.Reply.Text, "静安寺") {
		t.Errorf("claimed after the erasure is %+v, want all of the rest under another key, in doubt", got)
	}
}

// A focus of /compact goes with the message that said it, also where the command folded its blanks.
func TestFoldedFocusIsErased(t *testing.T) {
	t.Parallel()
	s, pool, c := storetest.OpenChat(t)
	c.Exchange(storetest.ZhangID, "/compact 储物柜   KZ-88213\n在三楼", "好的") // 3 and 4
	compacted := storetest.SummaryOf(0, 2, "早上好")
	compacted.Log.Focus = "储物柜 KZ-88213 在三楼"
	storetest.Must[sessions.Compacted](t)(s.Compactions.Compact(t.Context(), c.Lease, compacted))
	storetest.Must[sessions.Erased](t)(s.Erasure.Erase(t.Context(), c.Reader.Key, []int64{3}))
	storetest.WantGone(t, pool, "KZ-88213")
}

// A member with a borrowed nick, once forgotten, takes no quote of its owner along and leaves none of their own. A
// quote has no id that Ebb knows here.
func TestQuotesUnderABorrowedNick(t *testing.T) {
	t.Parallel()
	s, pool, c := storetest.OpenChat(t)
	quote := func(id, nick, text string) {
		q := c.Speak(id, "staff0003", "王芳", "同意", &sessions.Quote{Nick: nick, Text: text})
		c.Turn("staff0003", "王芳", "好的", q)
	}
	owner := c.Speak("l1", storetest.LiID, "李娜", "发布窗口定在周五晚上", nil)
	c.Turn(storetest.LiID, "李娜", "好的", owner)
	copied := c.Speak("z1", storetest.ZhangID, storetest.ZhangNick, "发布窗口定在周五晚上", nil) // under a name of his own
	c.Turn(storetest.ZhangID, storetest.ZhangNick, "好的", copied)
	borrowed := c.Speak("z2", storetest.ZhangID, "李娜", "我的储物柜是 KZ-88213", nil)
	c.Turn(storetest.ZhangID, "李娜", "好的", borrowed)
	quote("q1", "李娜", "发布窗口定在周五晚上")
	quote("q2", "李娜", "我的储物柜是 KZ-88213")
	storetest.Must[memory.Forgotten](t)(s.Erasure.ForgetPerson(t.Context(), memory.Forget{Robot: storetest.Robot, Person: storetest.ZhangID}))
	storetest.WantGone(t, pool, "KZ-88213")
	const quoted = "SELECT message #>> '{quote,text}' FROM dingtalk_session_events WHERE msg_id = 'q1'"
	if got := storetest.Collect(t, pool, quoted, pgx.RowTo[string]); len(got) != 1 || got[0] != "发布窗口定在周五晚上" {
		t.Errorf("the quote of the nick's owner is %q", got)
	}
}

// A message without a place is erased with the address that its answer would have gone to.
func TestErasedLetterKeepsNoWebhook(t *testing.T) {
	t.Parallel()
	s, pool, c := storetest.OpenChat(t)
	waiting := c.Speak("z1", storetest.ZhangID, storetest.ZhangNick, "我的储物柜是 KZ-88213", nil)
	storetest.Must[sessions.Erased](t)(s.Erasure.EraseEvents(t.Context(), c.Reader.Key, nil, []int64{waiting.EventID}))
	storetest.WantGone(t, pool, "KZ-88213", "sendBySession")
}
