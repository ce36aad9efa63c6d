package sql

import (
	"testing"

	"ebb/memory"
	"ebb/memory/rank"
	"ebb/sessions/sessionstest"
)

// Whatever a message is made of, what it is found by takes time in proportion to its length.
func TestGrowth(t *testing.T) {
	for name, f := range map[string]func(string){
		"terms of an event":  func(s string) { arrayText(eventTerms("k", s)) },
		"terms of a memory":  func(s string) { memoryTerms(memory.ScopeGroup, "g", s) },
		"hash of a fact":     func(s string) { factHash(memory.Draft{Content: s}, "r") },
		"words of a search":  func(s string) { rank.Keys(eventScope("k"), s) },
		"what can be stored": func(s string) { clean(s) },
	} {
		t.Run(name, func(t *testing.T) { sessionstest.CheckGrowth(t, name, sessionstest.LongMessage, f) })
	}
}
