package card

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/breaker"
	"ebb/bot/dingtalk/calls"
	"ebb/bot/dingtalk/markdown"
	"ebb/sessions"
	"ebb/sessions/guard"
)

// Mode says how far answers are streamed.
type Mode string

// The modes.
const (
	Auto   Mode = "auto"   // as far as the month's calls permit
	Always Mode = "always" // as long as the month's calls permit any
	Never  Mode = "never"  // each card is filled once, at its end
)

// Config is the settings and the parts of [Cards]. All are required.
type Config struct {
	API      API
	Store    sessions.Cards
	Governor *calls.Governor
	Template string // empty: no new card
	Key      string // its variable for the text
	Stream   Mode
	Interval time.Duration                        // time between two updates of a card
	Thoughts bool                                 // end of the model's reasoning while it thinks
	Language func(sessions.ConversationID) string // for a card that is closed in the background
	Pictures markdown.Pictures                    // hosts of pictures that a frame may show
}

// Cards streams running turns, ends cards with replies, and closes the cards that no reply will end. Its methods may
// be called from any goroutine.
type Cards struct {
	cfg       Config
	streaming atomic.Int64
	breaker   *breaker.Breaker
	proved    atomic.Bool // the template has the variable of the text

	queued  atomic.Int64  // cards of turns that wait for a slot
	opening chan struct{} // limits those of them that are opened now

	opened *lru.Cache[string, openedCard] // cards without an end

	carriers *lru.Cache[string, string] // keys of the messages of cards, by track id

	closing struct { // task that closes abandoned cards
		to       time.Time // no card is closed until then
		spent    bool      // The month's calls were used up: the pause ends when there are calls.
		failures int
	}
}

// openedCard is this process's knowledge of a card without an end. The zero value is a card of another process, or
// none.
type openedCard struct {
	created  bool              // This process delivered it, or took it over; false in an entry: it was not delivered.
	byReply  bool              // Its reply delivered it, in this process: it has the buttons of a finished card.
	prepaid  bool              // reserved counts the call that ends it, as its row says.
	reserved calls.Reservation // zero value: by another process
	waits    int               // attempts of the reply that made no call
	since    time.Time         // first attempt of the reply
	key      string            // variable of its text; empty: the configured one
	busy     time.Time         // a call of an earlier display may change it until then
}

// A forgotten card is ended like one of another process.
const maxOpened = 4096

// A running turn's card waits for few of those of waiting turns at the rate of its API.
const maxOpening = 4

// NewCards returns a display without cards.
func NewCards(cfg Config) *Cards {
	opened, err := lru.New[string, openedCard](maxOpened)
	if err != nil {
		panic(err) // the size is a positive constant
	}
	carriers, err := lru.New[string, string](maxOpened)
	if err != nil {
		panic(err)
	}
	return &Cards{cfg: cfg, opened: opened, carriers: carriers, breaker: breaker.New(), opening: make(chan struct{}, maxOpening)}
}

// The turn waits for the look for an earlier card.
const resumeTime = time.Second

// resume returns the open card that the reply will end, of an earlier attempt, of the wait for a slot, or of a turn that others
// stopped for themselves. If there is none, or its delivery failed in this process, delivered is false and track is a new card's id.
func (c *Cards) resume(ctx context.Context, s chat.Shown) (track string, delivered bool) {
	one, stop := context.WithTimeout(ctx, resumeTime)
	defer stop()
	events := make([]int64, len(s.Asked))
	for i, e := range s.Asked {
		events[i] = e.ID
	}
	known, err := c.cfg.Store.OpenCardOf(one, s.Lease.Key, s.Tracks, events)
	if err != nil {
		return s.Tracks[0], false
	}
	card, ok := c.opened.Get(known.Track)
	if !ok { // this process may know more of it
		card = openedCard{created: true, prepaid: known.Prepaid}
	}
	card.spendAs(known)
	card.key, card.busy = known.TextKey, time.Now().Add(known.Busy)
	c.opened.Add(known.Track, card)
	return known.Track, card.created
}

// spendAs forgets a prepaid call that another process has made: the session was that process's meanwhile.
func (o *openedCard) spendAs(row sessions.Card) {
	if !row.Prepaid {
		o.prepaid, o.reserved = false, calls.Reservation{}
	}
}

// textKey is the variable of a card's text. The settings may have changed since it was delivered.
func (c *Cards) textKey(track string) string {
	card, _ := c.opened.Get(track)
	return cmp.Or(card.key, c.cfg.Key)
}

// pauseAfterFault follows a refusal that any card would meet, pauseUndelivered a card that one conversation can't get. Each attempt
// would cost a call.
const (
	pauseAfterFault  = 10 * time.Minute
	pauseUndelivered = time.Hour
)

// note learns from the outcome of a call. Failures of the template and of the application pause all cards, others those of their
// conversation. creates says that the call delivers a card.
func (c *Cards) note(ctx context.Context, of sessions.ConversationID, err error, creates bool) {
	failed, _ := errors.AsType[*chat.SendError](err)
	log := zerolog.Ctx(ctx)
	switch {
	case calls.IsRefused(err): // the governor pauses
		return
	case failed != nil && failed.Silent:
		if d, all := c.breaker.Unanswered(of); d > 0 {
			log.Warn().Err(err).Str("conversation", string(of)).Bool("all", all).Dur("pause_ms", d).Msg("DingTalk did not answer a call of a card: replies are Markdown for a while")
		}
		return
	case err != nil && (failed == nil || failed.Maybe): // not made, or it says nothing
		return
	}
	c.breaker.Answered(of)
	pause := max(pauseAfterFault, pauseOf(err))
	switch {
	case c.isEverybodys(err):
		c.breaker.CloseAll(pauseAfterFault)
		log.Error().Err(err).Dur("pause_ms", pauseAfterFault).Msg("DingTalk refused a card: replies are Markdown for a while")
		return
	case creates && isFinal(err) && !errors.Is(err, ErrExists):
		pause = pauseUndelivered
	case pauseOf(err) <= longestPause:
		return
	}
	c.breaker.Close(of, pause)
	log.Warn().Err(err).Str("conversation", string(of)).Dur("pause_ms", pause).Msg("DingTalk refused a card of a conversation: its replies are Markdown for a while")
}

// An unknown error is the answer for a variable that the template lacks, and for others: after a text was taken it is one of those.
func (c *Cards) isEverybodys(err error) bool {
	failed, ok := errors.AsType[*chat.SendError](err)
	return errors.Is(err, ErrTemplate) || errors.Is(err, ErrPermission) || errors.Is(err, ErrVariable) && !c.proved.Load() || ok && failed.Account
}

// guarded makes a panic a failure of its card, whose call may have been made.
func guarded(ctx context.Context, call func() error) error {
	err := guard.Do(ctx, guard.Card, call)
	if errors.Is(err, guard.ErrPanicked) {
		err = &chat.SendError{Maybe: true, Err: err}
	}
	return err
}

// update makes a call that changes a card of a conversation.
func (c *Cards) update(ctx context.Context, of sessions.ConversationID, u Update) error {
	err := guarded(ctx, func() error { return c.cfg.API.StreamCard(ctx, u) })
	if err == nil {
		c.proved.Store(true)
	}
	c.note(ctx, of, err, false)
	return err
}

// Carrier returns the key of the message of a card that this process created; empty for another one.
func (c *Cards) Carrier(track string) string {
	carrier, _ := c.carriers.Get(track)
	return carrier
}

// An existing card was delivered by an earlier attempt.
func (c *Cards) create(ctx context.Context, to sessions.Target, n New) error {
	n.Template = c.cfg.Template
	err := guarded(ctx, func() error {
		carrier, err := c.cfg.API.CreateCard(ctx, to, n)
		if carrier != "" {
			c.carriers.Add(n.Track, carrier)
		}
		return err
	})
	c.note(ctx, to.ConversationID, err, true)
	if errors.Is(err, ErrExists) {
		return nil
	}
	return err
}

// An answer waits for no longer pause. Longer ones follow a missing permission, refused credentials or a used up
// month.
const longestPause = 5 * time.Second

// isPermanent reports whether a repeated call would fail likewise within the time that an answer can wait.
func isPermanent(err error) bool {
	return calls.IsRefused(err) || isFinal(err) || pauseOf(err) > longestPause
}

// isFinal reports whether DingTalk refuses the call for its card, at any time.
func isFinal(err error) bool {
	failed, ok := errors.AsType[*chat.SendError](err)
	return ok && (failed.Permanent || failed.Refused)
}

// isSilent reports whether DingTalk did not answer the call in time.
func isSilent(err error) bool {
	failed, ok := errors.AsType[*chat.SendError](err)
	return ok && failed.Silent
}

// pauseOf is the least time to the next attempt; 0 without one.
func pauseOf(err error) time.Duration {
	if failed, ok := errors.AsType[*chat.SendError](err); ok {
		return failed.After
	}
	if refused, ok := errors.AsType[*calls.RefusedError](err); ok {
		return max(longestPause, refused.After)
	}
	return 0
}

func mayHaveArrived(err error) bool {
	failed, ok := errors.AsType[*chat.SendError](err)
	return ok && failed.Maybe
}
