// Package erasure erases events, forgets facts, messages and people, and deletes sessions.
//
// Rows that must stay are wiped in place, so that places, ranges and ids hold. An erasure holds the session's row but
// no lease. Summaries that repeat erased content are written again without it, and views go back before them.
package erasure
