package index

import (
	"strings"

	"ebb/memory"
	"ebb/memory/rank"
	"ebb/sessions"
)

// EventScope is what the terms of a session's events are hashed with.
func EventScope(key sessions.Key) rank.Scope { return rank.ScopeOf("events", string(key)) }

// MemoryScope is what the terms of the memories of one scope are hashed with.
func MemoryScope(scope memory.Scope, id string) rank.Scope { return rank.ScopeOf(string(scope), id) }

// EventTerms is what a search finds an event by: one that was erased by nothing.
func EventTerms(key sessions.Key, content string) []int64 {
	left := strings.ReplaceAll(content, sessions.ErasedText, "")
	if left == "" && content != "" {
		return nil
	}
	return rank.Keys(EventScope(key), left)
}

// MemoryTerms is what a search finds a memory by.
func MemoryTerms(scope memory.Scope, id, content string) []int64 {
	return rank.Keys(MemoryScope(scope, id), content)
}
