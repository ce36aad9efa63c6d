// Package erasure erases events, forgets facts, messages and people, and deletes sessions.
//
// Summaries that repeat erased content are written again without it, and views go back before them.
package erasure
