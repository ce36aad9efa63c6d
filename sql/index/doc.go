// Package index finds events and memories by their terms, which are hashes of words.
//
// The index of a session's log is written behind the log: a turn writes no terms. A session's owner indexes 64 places or more at
// a time, in one transaction, as a segment that takes smaller ones in. A search reads the places behind the indexed ones from the
// log, so that it finds what was said a moment ago. An erasure takes terms out in its own transaction.
//
// Memories have their terms with them, in an index of PostgreSQL's.
package index
