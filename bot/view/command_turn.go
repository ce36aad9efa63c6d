package view

import (
	"errors"
	"slices"

	"ebb/memory"
	"ebb/memory/draft"
	"ebb/sessions"
)

// CommandTurn is a turn that answers a slash command. The command may change all of it.
type CommandTurn struct {
	Lease sessions.Lease
	View  sessions.View
	Asked sessions.Event // the command, the first of View.Pending
	Lang  string         // for fixed words: zh or en
	// Outcome is for later commands that refer to it.
	Outcome sessions.Outcome
	Kept    string // logged in place of an answer that must not be stored; empty: the answer itself
	// Send sends a file behind the answer, and returns its name as people see it. The error says why there is none.
	Send func(name string, body []byte) (string, error)
}

// Stopped is a turn that commands ended.
type Stopped struct {
	Key    sessions.Key
	Asked  []sessions.Event // messages that it answered
	Lang   string           // for fixed words
	Said   string           // words of the model so far
	By     []sessions.Event // the commands in words, the first sent first
	Others bool             // messages of other people go on
	Shown  bool             // people see the turn on a card
}

// ChatOf describes the conversation of a view and the speakers of messages; later are the turn's own events so far. Summaries count as
// retold: a fact that only they hold has no speaker.
func ChatOf(v sessions.View, asked, later []sessions.Event) draft.Chat {
	c := draft.ChatOf(v.Session, slices.Concat(v.Tail, asked, later))
	c.Reads = v.Reads
	if v.Session.CompactedSeq > 0 {
		c.Retold = []string{v.Gap}
	}
	for _, a := range v.Summaries {
		c.Retold = append(c.Retold, a.Text)
	}
	return c
}

// Reader returns the conversation's rights to read memory, for people: nothing is left out for a model.
func (t *CommandTurn) Reader() memory.Reader {
	r := draft.ReaderOf(ChatOf(t.View, []sessions.Event{t.Asked}, nil))
	r.Reads = ""
	return r
}

// ErrInline cancels a compaction that an answer waits for. Upkeep continues it after the answer.
var ErrInline = errors.New("the answer's wait for a compaction ended")
