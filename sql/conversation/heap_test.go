package conversation_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"ebb/sessions"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// The views of many turns at once take memory for what the turns take, not for all that waits: twenty long messages wait, and
// a turn takes one.
func TestHeapOfTurns(t *testing.T) {
	const turns, waiting, bytes = 128, 20, 270_000
	s, _ := storetest.Open(t, sqltest.URL(t))
	key := sessions.NewKey("robot", "cid", "")
	var l sessions.Lease
	for i := range waiting {
		l = storetest.Must[sessions.Accepted](t)(s.Inbox.Accept(t.Context(), "a", key, sessions.Message{
			ID: sessions.MessageID(fmt.Sprint("m", i)), RobotCode: "robot", ConversationID: "cid", Text: strings.Repeat("x", bytes),
		})).Lease
	}
	live := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := live()
	views := make([]sessions.View, turns)
	for i := range views {
		views[i] = storetest.Must[sessions.View](t)(s.Turns.Begin(t.Context(), l, waiting))
	}
	took := live() - before
	t.Logf("%d turns hold %.1f MB", turns, float64(took)/1e6)
	if limit := int64(2 * turns * bytes); took > limit {
		t.Errorf("%d turns hold %d bytes, want at most %d", turns, took, limit)
	}
	runtime.KeepAlive(views)
}
