package pages

import (
	"context"
	"iter"
	"time"

	"ebb/sessions"
)

// Expiring counts a session's events by their retention period.
type Expiring struct {
	Key     sessions.Key
	Title   string // empty for a private chat
	Private bool
	Due     int // past the period: the next run deletes them
	Soon    int // past it within the horizon
	Held    int // past it, but unflushed or owed
	Oldest  time.Time
}

// ExpiringRows counts rows past their periods.
type ExpiringRows struct{ Memories, Compactions, Replies, Actions int }

// UsageBy divides sums of usage.
type UsageBy struct{ Kind, Day, Session, Model, Person bool }

// Usage is a sum of usage. The fields by which it is not divided are empty.
type Usage struct {
	Key    sessions.Key
	Title  string // title of a group
	Day    string // 2006-01-02, UTC
	Bot    string // its name, or its code
	Person sessions.UserID
	Nick   string // the newest
	Turns  int    // those that a model answered; one of several people counts for one of them
	sessions.Spending
}

// Requests reads the compactions that administrators asked for.
type Requests interface {
	// CompactionRequested returns a session's waiting or running request; ok is false for none.
	CompactionRequested(ctx context.Context, key sessions.Key) (r sessions.CompactionRequest, ok bool, err error)
}

// Speaker is a person who spoke.
type Speaker struct {
	ID   sessions.UserID
	Nick string    // the newest
	Last time.Time // to within an hour
}

// PeopleFilter narrows a list of people. Names may be known from private chats alone: without Names nothing depends on
// one.
type PeopleFilter struct {
	Part  string // part of an id, or of a name that the person went by; empty: all
	Names bool
}

// ConversationCount counts the conversations in which a person spoke.
type ConversationCount struct {
	Private, Groups int
	Last            *time.Time // time of the newest message, to within an hour; nil: none
}

// Records reads rows over all sessions, for roles that see all groups, without text of private chats.
type Records interface {
	// Expiring lists sessions with events past a period, now or within soon.
	Expiring(ctx context.Context, period, soon time.Duration, p Page) (rows []Expiring, next string, err error)
	// ExpiringRows counts the rows past the periods. It does not count events.
	ExpiringRows(ctx context.Context, r sessions.Retention) (ExpiringRows, error)
	// People lists people who spoke, by id, or with a part of names by name, once for each.
	People(ctx context.Context, f PeopleFilter, p Page) (rows []Speaker, next string, err error)
	// CountConversations counts a person's conversations under one id; all are 0 for an unknown person.
	CountConversations(ctx context.Context, person sessions.UserID) (ConversationCount, error)
	// Usage sums usage from a day on, the most expensive first, at most limit rows.
	Usage(ctx context.Context, since time.Time, by UsageBy, limit int) ([]Usage, error)
	// UsageList lists sums from a day on, in the order of their fields.
	UsageList(ctx context.Context, since time.Time, by UsageBy, p Page) (rows []Usage, next string, err error)
	// UsageRows reads all sums from a day on, in pages. An error is its last element.
	UsageRows(ctx context.Context, since time.Time, by UsageBy) iter.Seq2[Usage, error]
}
