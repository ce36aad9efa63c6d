package rank

import (
	"testing"
	"time"

	"ebb/sessions/sessionstest"
)

// Indexing a text takes time in proportion to its length, for any content, and so does reading a query.
func TestGrowth(t *testing.T) {
	query, now := ParseQuery("上周三在 a-b_c.a 的 passwords 是什么", time.Now()), time.Now()
	for name, f := range map[string]func(string){
		"keys":  func(s string) { Keys(1, s) },
		"query": func(s string) { ParseQuery(s, now) },
		"piece": func(s string) { query.Piece(s, 1000) },
	} {
		t.Run(name, func(t *testing.T) { sessionstest.CheckGrowth(t, name, sessionstest.LongMessage/3, f) })
	}
}
