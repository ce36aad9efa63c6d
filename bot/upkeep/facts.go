package upkeep

import (
	"ebb/bot/view"
	"ebb/compaction"
	"ebb/memory"
	"ebb/sessions"
)

// FactsDue reports whether new events are to be flushed whatever the size of the context: after each turn, or when
// enough messages are candidates. It does not replace the cycle's flush. A flush after each turn may use the whole
// daily budget, one for candidates only the low-priority part.
func (u *Worker) FactsDue(s sessions.Session) bool {
	set, want := u.views.Settings(s), u.views.Remember()
	if s.FlushedSeq >= s.LastSeq || s.FlushFailures >= compaction.MaxFlushFailures {
		return false
	}
	if want.EveryTurn {
		return !view.Spent(set, s)
	}
	return want.Candidates > 0 && s.Candidates >= want.Candidates && set.Policy.Flush && !lowBudgetSpent(set, s)
}

func (u *Worker) factsTrigger() memory.FlushTrigger {
	if u.views.Remember().EveryTurn {
		return flushEveryTurn
	}
	return flushCandidates
}
