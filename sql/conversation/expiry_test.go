package conversation_test

import (
	"testing"

	"ebb/sessions"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// The marks of messages that were deleted with their session go after a day.
func TestMarksOfDeletedMessagesExpire(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	storetest.Execute(t, pool, `INSERT INTO deleted_messages (message, deleted_at) VALUES ('new', now() - interval '23 hours'), ('old', now() - interval '25 hours')`)
	if _, err := s.FactUpkeep.DeleteExpired(t.Context()); err != nil {
		t.Fatal(err)
	}
	var left string
	if err := pool.QueryRow(t.Context(), "SELECT string_agg(convert_from(message, 'UTF8'), ' ') FROM deleted_messages").Scan(&left); err != nil || left != "new" {
		t.Errorf("%q is left (%v), want the new one", left, err)
	}
}

// The mark of an earlier release names the whole session.
func TestMarkOfAnEarlierRelease(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	key := sessions.NewKey(storetest.Robot, "cid", storetest.ZhangID)
	storetest.Execute(t, pool, `INSERT INTO deleted_messages (message) VALUES (sha256(convert_to($1::text || ' m1', 'UTF8')))`, string(key))
	m := sessions.Message{RobotCode: storetest.Robot, ConversationID: "cid", ConversationType: sessions.Group, ID: "m1", SenderID: storetest.ZhangID, Kind: "text", Text: "好"}
	known := storetest.Must[sessions.Place](t)(s.Scopes.PlaceOf(t.Context(), m, []sessions.Key{key})).Earlier
	if a := storetest.Must[sessions.Accepted](t)(s.Inbox.Accept(t.Context(), "a", key, m)); a.New || known != key {
		t.Errorf("the deleted message was accepted as %+v, known under %q", a, known)
	}
}
