package bot

import (
	"ebb/compaction"
	"ebb/memory/classify"
	"ebb/sessions"
)

// mark notes which of the turn's messages look worth remembering: people's own words, as they were said. It is a cheap
// look that asks no model.
func (b *Bot) mark(t *turn) {
	if t.plan.kind != kindAsk && t.plan.kind != kindStale {
		return
	}
	t.marked = nil
	for _, e := range t.asked {
		if classify.Candidate(b.ownWords(e)) {
			t.marked = append(t.marked, e.ID)
		}
	}
}

// factsDue reports whether facts are to be drawn out of what a session said since its last flush, whatever the size of
// its context: after each turn, or where enough messages look worth it. It does not stand for the cycle's flush. What an
// operator asks for after each turn may take what is left of the day, candidates only what low priority may.
func (b *Bot) factsDue(s sessions.Session) bool {
	set, want := b.settings(s), b.cfg.Remember
	if s.FlushedSeq >= s.LastSeq || s.FlushFailures >= compaction.MaxFlushFailures {
		return false
	}
	if want.EveryTurn {
		return !spent(set, s)
	}
	return want.Candidates > 0 && s.Candidates >= want.Candidates && set.Policy.Flush && !spentLow(set, s)
}

// factsTrigger is what asks for such a flush.
func (b *Bot) factsTrigger() string {
	if b.cfg.Remember.EveryTurn {
		return flushEveryTurn
	}
	return flushCandidates
}
