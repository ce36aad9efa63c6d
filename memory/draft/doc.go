// Package draft turns the arguments of a memory_save call into drafts of facts, for turns and flushes: [ParseSave]
// reads and refuses items, [Route] decides scope, source, dates and expiry. The model only labels a fact. No text can
// make a fact readable to more people.
package draft
