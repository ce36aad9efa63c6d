package sessions

import (
	"context"
	"time"
)

// CardState is the state of a card as people see it.
type CardState string

// The states of a card. Only an open card still changes.
const (
	CardOpen     CardState = "open"     // it still waits for its last frame
	CardFinished CardState = "finished" // it shows the beginning of its reply
	CardFailed   CardState = "failed"   // it shows an error
	CardGivenUp  CardState = "given_up" // DingTalk refused its end repeatedly: it may look unfinished
)

// CardKind is the kind of a card.
type CardKind string

// The kinds.
const (
	ReplyCard    CardKind = "card"
	ReactionCard CardKind = "reaction" // on the message whose id is its track id, until it is answered
)

// Card is something that DingTalk shows until the bot ends it.
type Card struct {
	Key       Key
	Kind      CardKind
	Track     string // id, the same for each attempt of a turn
	EventID   int64  // the first message that the turn answers
	Prepaid   bool   // the call that ends the card is counted, and its outcome is unknown
	Tries     int    // claims by AbandonedCards, the last one included
	TextKey   string // variable of its text; empty: the configured one
	CreatedAt time.Time

	// Busy is the time in which a call of another display may still change the card, for OpenCardOf.
	Busy time.Duration
}

// Rating is a member's judgement of an answer.
type Rating string

// The ratings.
const (
	Good Rating = "good"
	Bad  Rating = "bad"
)

// Clicked is the card of a click.
type Clicked struct {
	Card
	State   CardState
	Rating  Rating  // empty: not rated
	Asked   bool    // the person wrote a message that the card's turn answers
	Shared  bool    // others did so too, or may once it begins, and the turn has not committed
	Running bool    // the turn has not committed
	Nick    string  // the person's in the session; empty: unknown
	Words   string  // the person's newest text in the session, besides commands; empty: unknown
	Message Message // a message of the conversation, without sender and text
}

// Cards tracks cards, so that none stays unfinished. A reply in the outbox names its card in [Target].Card, and
// [SendOutcome].Card settles it.
type Cards interface {
	// OpenCard records a card before its delivery, with a prepaid end, and returns its state. known says that an
	// earlier attempt recorded it, and may have delivered it. The card is not abandoned during hold.
	OpenCard(ctx context.Context, l Lease, c Card, hold time.Duration) (state CardState, known bool, err error)
	// SettleCard records the final state of an open card, and forgets the card of a deleted session. CardOpen ends its
	// hold, and opens a settled reaction again.
	SettleCard(ctx context.Context, key Key, track string, state CardState) error
	// SetPrepaid records Prepaid and TextKey of an open card: true before the delivery of a card that the commit recorded, false
	// after a failed call.
	SetPrepaid(ctx context.Context, c Card) error
	// LeaseOf reads the session's lease, of any owner or none: a turn whose term has ended shows nothing more. ErrNotFound without
	// such a session.
	LeaseOf(ctx context.Context, key Key) (Lease, error)
	// BeginFrame records that a call shows something on an open card, for [FrameTime] at most. An erasure waits as long. It also records
	// the key of the card's message, empty if it is not known: a quote of the card has it, in any process. It fails with ErrLeaseLost
	// if the lease is not the current one. ErrConflict means that the card is not open, or that a call of an earlier term may be
	// under way.
	BeginFrame(ctx context.Context, l Lease, track, carrier string) error
	// EndFrame records that no call of the lease's term is under way.
	EndFrame(ctx context.Context, l Lease, track string) error
	// LeaveCard makes a claimed reply take another way than its card, which is then abandoned. ErrConflict if the
	// claim is not the last one.
	LeaveCard(ctx context.Context, o Outgoing) error
	// OpenCardOf finds the oldest open reply card of a session among track ids, and those whose EventID is among events, or
	// ErrNotFound.
	OpenCardOf(ctx context.Context, key Key, tracks []string, events []int64) (Card, error)
	// ClickedCard finds the card of a click by a person, or ErrNotFound.
	ClickedCard(ctx context.Context, track string, by UserID) (Clicked, error)
	// RateCard stores the rating of a card. Only the first rating counts; first is false for others.
	RateCard(ctx context.Context, key Key, track string, r Rating) (first bool, err error)
	// AbandonedCards claims up to limit open cards of a kind which no waiting message and no unsent reply will finish.
	// The outcome of a running delivery is awaited for a few seconds, even if its reply was erased, and so is a call that
	// shows something. A claimed card comes back after retry unless it is settled or postponed.
	AbandonedCards(ctx context.Context, kind CardKind, retry time.Duration, limit int) ([]Card, error)
	// PostponeCard ends a claim by AbandonedCards without a settled card, which comes back after a pause. With made,
	// the call that ends the card was made, and the next one is not prepaid. Otherwise the claim is no try. A later
	// claim stays as it is.
	PostponeCard(ctx context.Context, c Card, pause time.Duration, made bool) error
	// GivenUpCards counts the reply cards in the state CardGivenUp.
	GivenUpCards(ctx context.Context) (int, error)
}
