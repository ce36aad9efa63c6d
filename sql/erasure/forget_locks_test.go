package erasure_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// An erasure that waits for a reader's session has locked none of that session's replies, and no memory. A claim of a reply
// and a save of facts lock the session first, so that the other order would be a deadlock.
func TestErasureLocksReadersFirst(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u", false)
	c.Exchange(storetest.ZhangID, "暗号是 "+storetest.Secret, "好") // 3 and 4
	id := flush(c, 4, storetest.SaidBy(c, "暗号是 "+storetest.Secret, storetest.ZhangID, 3)).Saved[0]
	day := "那天定的暗号是 " + storetest.Secret
	digest(t, pool, c, day, 0) // it goes before the fact, in the same transaction
	reader := &storetest.Chat{T: t, Store: s, Reader: memory.Reader{
		Key: sessions.NewKey(storetest.Robot, "cid", storetest.LiID), Robot: storetest.Robot, Conversation: "cid", Users: []sessions.UserID{storetest.LiID},
	}}
	asked := reader.Speak("l1", storetest.LiID, "李娜", "那天定了什么？", nil)
	storetest.Must[sessions.Committed](t)(s.Turns.Commit(t.Context(), reader.Lease, sessions.Turn{
		Taken: []int64{asked.EventID}, TakenTokens: []int{5},
		Reply: &sessions.Reply{Text: "日报：" + day, Nonce: "n", Target: sessions.Target{RobotCode: storetest.Robot, ConversationID: "cid"}}, ReplyWaits: true,
	}))

	claim := storetest.Must[pgx.Tx](t)(pool.Begin(t.Context()))
	defer func() { _ = claim.Rollback(t.Context()) }()
	if _, err := claim.Exec(t.Context(), "SELECT FROM dingtalk_sessions WHERE session_key = $1 FOR SHARE", string(reader.Reader.Key)); err != nil {
		t.Fatal(err)
	}
	forget := c.Speak("z2", storetest.ZhangID, storetest.ZhangNick, fmt.Sprint("/forget #", id), nil)
	forgotten := make(chan error, 1)
	go func() {
		_, err := s.Erasure.ForgetMemory(t.Context(), id, memory.Asking{Lease: forget.Lease, Event: forget.EventID})
		forgotten <- err
	}()
	storetest.AwaitBlocked(t, pool)
	for what, row := range map[string]string{
		"an open reply of the reader": "SELECT FROM outbox WHERE session_key = $1 FOR UPDATE NOWAIT",
		"a memory":                    "SELECT FROM memories WHERE source_session <> $1 FOR UPDATE NOWAIT",
	} {
		tag, err := claim.Exec(t.Context(), row, string(reader.Reader.Key))
		if err != nil || tag.RowsAffected() == 0 {
			t.Fatalf("%s was locked before the session of the reader: %v, %v", what, tag, err)
		}
	}
	if err := claim.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-forgotten; err != nil {
		t.Fatal(err)
	}
	storetest.WantGone(t, pool, storetest.Secret)
}
