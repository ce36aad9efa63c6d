// Package draft turns the arguments of a memory_save call into drafts of facts. Turns and flushes share it.
//
//	save.go       [ParseSave] reads the call item by item and refuses what is never stored
//	attribute.go  finds the event that a fact came from, and its speaker
//	chat.go       the place and the people of a conversation
//	route.go      [Route] decides scope, source, dates and expiry
//
// The model only labels a fact. No text can make a fact readable to more people.
package draft
