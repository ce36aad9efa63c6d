package erasure_test

import (
	"testing"

	"ebb/memory"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// A message without a session goes with its person, also before a sweep saw it.
func TestForgottenWhileAccepted(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	dm := storetest.NewChat(t, s, "dm", storetest.ZhangID, true)
	storetest.Execute(t, pool, "UPDATE dingtalk_sessions SET conversation_type = '1'")
	slow := storetest.InsertAccepted(t, pool, dm, storetest.ZhangID, "悄悄说 "+storetest.Secret)
	storetest.ForgetZhang(t, s)
	if err := slow.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	stays(t, pool, storetest.Secret, string(storetest.ZhangID))
	if done := storetest.Must[memory.Forgotten](t)(s.Erasure.ForgetPerson(t.Context(), memory.Forget{Robot: storetest.Robot, Person: storetest.ZhangID})); done.Messages != 1 {
		t.Errorf("forgetting again gave %+v, want the message that came meanwhile", done)
	}
	storetest.WantGone(t, pool, storetest.Secret, string(storetest.ZhangID))
}
