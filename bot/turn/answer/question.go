package answer

import (
	"slices"

	"ebb/bot/approval"
	"ebb/bot/chat"
	"ebb/bot/sendfile"
	"ebb/bot/turn/choice"
	"ebb/bot/view"
	"ebb/memory"
	"ebb/memory/draft"
	"ebb/sessions"
)

// question is a choice while the model is asked about it. Each stage takes one and returns it with what it added.
type question struct {
	made   choice.Choice    // a compaction replaces its view, a refusal leaves its first message alone
	live   chat.Live        // nil: not shown
	share  int              // see [Answer]
	pinned *sessions.Pinned // read for this turn; nil: unchanged
	found  found
	// waiting are calls that wait for approval, read for the first one of the turn; nil: there was none.
	waiting *approval.Waiting
	media   attached
	files   *sendfile.Tray // the reply's
}

// found is the result of a question's search of memory. Its zero value: nothing was searched for.
type found struct {
	hits     []memory.Hit
	searched bool // also if nothing was found
	room     int  // maximum tokens of the hits in a request
}

// attached is the part of a question about the attachments of its messages and of the view.
type attached struct {
	of       map[int64][]sessions.Media // by event
	words    string                     // the asked messages' own, without the marks of attachments
	passages string                     // parts of large documents, for this question alone
	blind    bool                       // the model that answers takes no pictures
	again    bool                       // tools brought pictures back
	late     bool                       // the time was over before all asked attachments were fetched
}

// attach puts what was read into another reading of the events.
func (a attached) attach(events []sessions.Event) {
	for i := range events {
		if list := a.of[events[i].ID]; list != nil {
			events[i].Media = list
		}
	}
}

func (f found) facts() (ids []int64) {
	for _, h := range f.hits {
		if h.MemoryID != 0 {
			ids = append(ids, h.MemoryID)
		}
	}
	return ids
}

// chat lists texts of tools, summaries and recalled memory: a fact from them alone is no member's own statement. events are the turn's own
// so far.
func (q question) chat(events []sessions.Event) draft.Chat {
	c := view.ChatOf(q.made.View, q.made.Asked, events)
	for _, h := range q.found.hits {
		c.Retold = append(c.Retold, h.Content)
	}
	return c
}

// current numbers the events of the running turn as its commit will.
func (q question) current(events []sessions.Event) []sessions.Event {
	events = slices.Concat(q.made.View.Pending[:len(q.made.Asked)], events)
	for i := range events {
		events[i].Seq = q.made.Next() + int64(i)
	}
	return events
}
