package bot

import (
	"errors"
	"slices"

	"ebb/memory"
	"ebb/memory/draft"
	"ebb/sessions"
)

// exchange is what a turn and its command work on: the messages taken from those that wait, under a lease, and the view.
type exchange struct {
	key    sessions.Key
	lease  sessions.Lease
	view   sessions.View
	asked  []sessions.Event // the pending messages that the turn takes
	lang   string           // of fixed words: zh or en
	pinned *sessions.Pinned // memory that the view pins from this turn on; nil: as before
	// outcome is the result of the command that the turn runs, where a later command refers to it.
	outcome sessions.Outcome
	kept    string // stands in the log for an answer that must not be stored; empty: the answer itself
}

// chatWith is where the exchange takes place, and who speaks there; later are the turn's own events so far. Summaries
// count as retold: a fact that only they hold has no speaker.
func (x *exchange) chatWith(later []sessions.Event) draft.Chat {
	c := draft.ChatOf(x.view.Session, slices.Concat(x.view.Tail, x.asked, later))
	if x.view.Session.CompactedSeq > 0 {
		c.Retold = []string{x.view.Gap}
	}
	for _, a := range x.view.Summaries {
		c.Retold = append(c.Retold, a.Text)
	}
	return c
}

func (x *exchange) reader() memory.Reader { return draft.ReaderOf(x.chatWith(nil)) }

// errInline ends a compaction that an answer waits for. It says nothing of the summariser: upkeep, which has more time,
// goes on after the answer.
var errInline = errors.New("the answer waits no longer")
