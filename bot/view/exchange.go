package view

import (
	"errors"
	"slices"

	"ebb/memory"
	"ebb/memory/draft"
	"ebb/sessions"
)

// Exchange is what a turn and its command work on: the messages taken from those that wait, under a lease, and the view.
type Exchange struct {
	Key    sessions.Key
	Lease  sessions.Lease
	View   sessions.View
	Asked  []sessions.Event // the pending messages that the turn takes
	Lang   string           // of fixed words: zh or en
	Pinned *sessions.Pinned // memory that the view pins from this turn on; nil: as before
	// outcome is the result of the command that the turn runs, where a later command refers to it.
	Outcome sessions.Outcome
	Kept    string // stands in the log for an answer that must not be stored; empty: the answer itself
}

// ChatWith is where the exchange takes place, and who speaks there; later are the turn's own events so far. Summaries
// count as retold: a fact that only they hold has no speaker.
func (x *Exchange) ChatWith(later []sessions.Event) draft.Chat {
	c := draft.ChatOf(x.View.Session, slices.Concat(x.View.Tail, x.Asked, later))
	if x.View.Session.CompactedSeq > 0 {
		c.Retold = []string{x.View.Gap}
	}
	for _, a := range x.View.Summaries {
		c.Retold = append(c.Retold, a.Text)
	}
	return c
}

func (x *Exchange) Reader() memory.Reader { return draft.ReaderOf(x.ChatWith(nil)) }

// ErrInline ends a compaction that an answer waits for. It says nothing of the summariser: upkeep, which has more time,
// goes on after the answer.
var ErrInline = errors.New("the answer waits no longer")
