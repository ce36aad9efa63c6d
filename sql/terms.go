package sql

import (
	"strings"

	"ebb/memory"
	"ebb/memory/rank"
	"ebb/sessions"
)

// eventScope is what the terms of a session's events are hashed with.
func eventScope(key sessions.Key) rank.Scope { return rank.ScopeOf("events", string(key)) }

// memoryScope is what the terms of the memories of one scope are hashed with.
func memoryScope(scope memory.Scope, id string) rank.Scope { return rank.ScopeOf(string(scope), id) }

// eventTerms is what a search finds an event by: one that was erased by nothing.
func eventTerms(key sessions.Key, content string) []int64 {
	left := strings.ReplaceAll(content, sessions.ErasedText, "")
	if left == "" && content != "" {
		return nil
	}
	return rank.Keys(eventScope(key), left)
}

// memoryTerms is what a search finds a memory by.
func memoryTerms(scope memory.Scope, id, content string) []int64 {
	return rank.Keys(memoryScope(scope, id), content)
}
