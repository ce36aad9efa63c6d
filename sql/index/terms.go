package index

import (
	"strings"

	"ebb/memory"
	"ebb/memory/rank"
	"ebb/sessions"
)

// TermsVersion is the version of stored terms. The queries name it as a number, since the indexes of outdated rows
// depend on it. A new version needs a migration with new indexes.
const TermsVersion = 2

// EventScope is the hash scope of a session's events.
func EventScope(key sessions.Key) rank.Scope { return rank.ScopeOf("events", string(key)) }

// MemoryScope is the hash scope of one scope's memories.
func MemoryScope(scope memory.Scope, id string) rank.Scope { return rank.ScopeOf(string(scope), id) }

// EventTerms are the search terms of an event; an erased event has none.
func EventTerms(key sessions.Key, content string) []int64 {
	left := strings.ReplaceAll(content, sessions.ErasedText, "")
	if left == "" && content != "" {
		return nil
	}
	return rank.Keys(EventScope(key), left)
}

// MemoryTerms are the search terms of a memory.
func MemoryTerms(scope memory.Scope, id, content string) []int64 {
	return rank.Keys(MemoryScope(scope, id), content)
}
