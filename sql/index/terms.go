package index

import (
	"strings"

	"ebb/memory"
	"ebb/memory/rank"
	"ebb/sessions"
)

// TermsVersion is the version of stored terms. The queries of memories name it as a number, since the indexes of outdated rows
// depend on it: a new version needs a migration with new indexes. The index of a log by another version is made again.
const TermsVersion = 2

// MemoryScope is the hash scope of one scope's memories.
func MemoryScope(scope memory.Scope, id string) rank.Scope { return rank.ScopeOf(string(scope), id) }

// EventTerms are the search terms of an event, in no scope; an erased event has none.
func EventTerms(content string) []int64 {
	left := strings.ReplaceAll(content, sessions.ErasedText, "")
	if left == "" && content != "" {
		return nil
	}
	return rank.Keys(0, left)
}

// MemoryTerms are the search terms of a memory.
func MemoryTerms(scope memory.Scope, id, content string) []int64 {
	return rank.Keys(MemoryScope(scope, id), content)
}
