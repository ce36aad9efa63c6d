package upkeep

import (
	"ebb/bot/view"
	"ebb/compaction"
	"ebb/sessions"
)

// FactsDue reports whether facts are to be drawn out of what a session said since its last flush, whatever the size of
// its context: after each turn, or where enough messages look worth it. It does not stand for the cycle's flush. What an
// operator asks for after each turn may take what is left of the day, candidates only what low priority may.
func (u *Worker) FactsDue(s sessions.Session) bool {
	set, want := u.views.Settings(s), u.cfg.Remember
	if s.FlushedSeq >= s.LastSeq || s.FlushFailures >= compaction.MaxFlushFailures {
		return false
	}
	if want.EveryTurn {
		return !view.Spent(set, s)
	}
	return want.Candidates > 0 && s.Candidates >= want.Candidates && set.Policy.Flush && !spentLow(set, s)
}

// factsTrigger is what asks for such a flush.
func (u *Worker) factsTrigger() string {
	if u.cfg.Remember.EveryTurn {
		return flushEveryTurn
	}
	return flushCandidates
}
