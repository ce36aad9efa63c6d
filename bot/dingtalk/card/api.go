package card

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"ebb/bot/dingtalk/calls"
	"ebb/sessions"
)

// API makes the calls of cards. Its errors are [*chat.SendError]. The caller reserves each call; the API returns
// those that DingTalk does not count.
type API interface {
	// CreateCard creates and delivers a card that mentions people, and returns the key of its message. It fails with ErrExists if the
	// track id has a card.
	CreateCard(ctx context.Context, to sessions.Target, c New) (carrier string, err error)
	// StreamCard replaces a card's text. It fails with ErrUnknown without such a card.
	StreamCard(ctx context.Context, f Update) error
	// SetCard leaves other variables unchanged.
	SetCard(ctx context.Context, v Variables) error
}

// New is a card to create.
type New struct {
	Track     string
	Template  string
	Variables map[string]string
	Within    time.Duration // time for the request, once the rate permits it; 0: the transport's
	Reserved  calls.Reservation
}

// Variables are new values of a card.
type Variables struct {
	Track    string
	Values   map[string]string
	Reserved calls.Reservation
}

// Update is one streamed state of a card's text.
type Update struct {
	Track string
	Key   string // variable of the text
	Text  string // whole text so far
	ID    string // idempotency key: a repeated call changes nothing
	State State

	Within   time.Duration // time for the request, once the rate permits it; 0: the transport's
	Reserved calls.Reservation
}

// State is the state of a card after an update.
type State int

// The states.
const (
	Streaming State = iota // more text follows
	Finished
	Failed
)

// Errors of an [API].
var (
	ErrExists  = errors.New("the track id has a card already")
	ErrUnknown = errors.New("no such card")
	// ErrUndelivered says that the conversation can't get a card.
	ErrUndelivered = errors.New("the card was not delivered")
	// ErrTemplate means an absent or unpublished template.
	ErrTemplate   = errors.New("no such template")
	ErrVariable   = errors.New("no such variable")
	ErrPermission = errors.New("a permission is missing")
)

// frameID is an idempotency key, the same for each attempt in each process.
func frameID(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
