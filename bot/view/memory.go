package view

import (
	"context"
	"time"

	"ebb/bot/parts"
	"ebb/memory"
)

// Recall is when memory is searched.
type Recall string

// The kinds of recall.
const (
	RecallOff       Recall = ""
	RecallQuestions Recall = "questions" // if a message asks about something earlier
	RecallAlways    Recall = "always"
)

// Remember says how much memory a conversation shows, and when facts are extracted. The zero value shows none, and
// extracts before compactions, in idle sessions and at a stop.
type Remember struct {
	Recall       Recall
	RecallTokens int           // recalled text before a question
	RecallTime   time.Duration // time until the question goes without a search; 0: RecallTime
	PinnedTokens int
	EveryTurn    bool          // extract facts after each answer
	Candidates   int           // promising messages that trigger an extraction; 0: when the session is idle
	MaxPerScope  int           // facts of one scope before a consolidation; 0: none
	TaskTTL      time.Duration // 0: memory's default
}

// Facts lists the facts that a reader may see. See [memory.Facts].
type Facts interface {
	Pinned(ctx context.Context, r memory.Reader, limit int) ([]memory.Memory, error)
	Values(ctx context.Context, r memory.Reader, id int64) ([]memory.Memory, error)
}

// Memory is what requests show of memory.
type Memory struct {
	shared   *parts.Shared
	choices  Choices
	words    Words
	facts    Facts
	Remember Remember // how much a conversation shows
}
