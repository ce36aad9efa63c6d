package compaction

import (
	"errors"
	"fmt"
	"math"
	"time"

	"ebb/compaction/tokens"
	"ebb/sessions"
)

// State is the whole input of a decision, so that every process decides alike.
type State struct {
	Session       sessions.Session
	Tail          []sessions.Event // raw events after the cursor, without commands, with their shown tokens
	SummaryTokens int              // active summaries
	Fixed         int              // tokens of system prompt, tools and pinned memory
	Tokens        int              // size of the next request in the provider's tokens
	Now           time.Time
}

// Cut is a planned compaction: the tail's events before Index leave the view.
type Cut struct {
	Index   int
	Through int64 // Seq of the last leaving event
	Source  int   // tokens that leave
	Whole   int   // tokens of their texts as they were said, which is more than Source where the view shows less; 0: as Source
	Recent  int   // tokens that stay
}

// Reasons to compact nothing, until the context changes. ErrBlockedHead and ErrTooLittle match ErrAllRecent too.
var (
	ErrAllRecent       = errors.New("everything in the view is recent")
	ErrBlockedHead     = fmt.Errorf("blocked_head: a tool call that waits for its result begins the view: %w", ErrAllRecent)
	ErrTooLittle       = fmt.Errorf("too little can leave to be worth a summary: %w", ErrAllRecent)
	ErrSystemDominates = errors.New("system_dominates: system prompt, tools and pinned memory leave no room for a conversation")
)

// toolExchange is a call and its result, by index.
type toolExchange struct{ call, result int }

// pending stands for a missing result.
const pending = math.MaxInt

// pairCalls leaves a call without a result if its id comes again before one: providers reuse ids.
func pairCalls(tail []sessions.Event) []toolExchange {
	var out []toolExchange
	open := map[string]int{}
	for i, e := range tail {
		for _, c := range e.ToolCalls {
			if at, reused := open[c.ID]; reused {
				out = append(out, toolExchange{at, pending})
			}
			open[c.ID] = i
		}
		if e.Role == sessions.RoleTool {
			if at, ok := open[e.ToolCallID]; ok {
				out = append(out, toolExchange{at, i})
				delete(open, e.ToolCallID)
			}
		}
	}
	for _, at := range open {
		out = append(out, toolExchange{at, pending})
	}
	return out
}

// TurnStarts lists the first of adjacent user messages, since waiting ones are answered together. Events before the
// first one count as a turn; summaries belong to no turn.
func TurnStarts(events []sessions.Event) []int {
	var starts []int
	var before sessions.Role
	for i, e := range events {
		switch {
		case e.Role == sessions.RoleSummary:
			continue
		case starts == nil:
			starts = append(starts, 0)
		case e.Role == sessions.RoleUser && before != sessions.RoleUser:
			starts = append(starts, i)
		}
		before = e.Role
	}
	return starts
}

// TokensOf is the size of events in a request, with each message's overhead.
func TokensOf(events []sessions.Event) int {
	n := 0
	for _, e := range events {
		n += e.Tokens + tokens.MessageOverhead
	}
	return n
}

func lastSeq(events []sessions.Event) (seq int64) {
	for _, e := range events {
		seq = max(seq, e.Seq)
	}
	return seq
}

// MinSummary is the minimum of a summary in tokens, MinTarget that of a requested one.
const (
	MinSummary = 64
	MinTarget  = 120
)
