package sql

import (
	"testing"

	"ebb/memory"
	"ebb/memory/rank"
	"ebb/sessions/sessionstest"
	"ebb/sql/facts"
	"ebb/sql/index"
	"ebb/sql/pg"
)

// For any message, its search terms take time in proportion to its length.
func TestGrowth(t *testing.T) {
	for name, f := range map[string]func(string){
		"terms of an event":  func(s string) { index.EventTerms(s) },
		"terms of a memory":  func(s string) { index.MemoryTerms(memory.ScopeGroup, "g", s) },
		"hash of a fact":     func(s string) { facts.Hash(memory.Draft{Content: s}, "r") },
		"words of a search":  func(s string) { rank.Keys(0, s) },
		"what can be stored": func(s string) { pg.Clean(s) },
	} {
		t.Run(name, func(t *testing.T) { sessionstest.CheckGrowth(t, name, sessionstest.LongMessage, f) })
	}
}
