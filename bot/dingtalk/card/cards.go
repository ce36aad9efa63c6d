package card

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/calls"
	"ebb/bot/dingtalk/markdown"
	"ebb/sessions"
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
	Template string
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
	pausedTo  atomic.Int64 // no card is opened until then, in Unix nanoseconds

	queued  atomic.Int64  // cards of turns that wait for a slot
	opening chan struct{} // limits those of them that are opened now

	opened *lru.Cache[string, openedCard] // cards without an end

	undelivered *lru.Cache[sessions.ConversationID, time.Time] // conversations that get no card until then

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
	prepaid  bool              // reserved counts the call that ends it, as its row says.
	reserved calls.Reservation // zero value: by another process
	waits    int               // attempts of the reply that made no call
}

// A forgotten card is ended like one of another process.
const maxOpened = 4096

// NewCards returns a display without cards.
func NewCards(cfg Config) *Cards {
	opened, err := lru.New[string, openedCard](maxOpened)
	if err != nil {
		panic(err) // the size is a positive constant
	}
	undelivered, err := lru.New[sessions.ConversationID, time.Time](maxOpened)
	if err != nil {
		panic(err)
	}
	return &Cards{cfg: cfg, opened: opened, undelivered: undelivered, opening: make(chan struct{}, maxOpening)}
}

var _ chat.Display = (*Cards)(nil)

// Show implements [chat.Display]. Without calls for a card the reply of the turn is Markdown. So is that to scheduled
// messages alone: a person does not wait for it, and it would take a card each time.
func (c *Cards) Show(ctx context.Context, s chat.Shown) chat.Live {
	level := c.cfg.Governor.Level()
	full := level > calls.Unstreamed || s.Target.Scheduled || c.isPaused(s.Target)
	if !full && c.cfg.Stream != Never && (level == calls.Streaming || c.cfg.Stream == Always) {
		return c.stream(ctx, s)
	}
	track, delivered := c.resume(ctx, s)
	if delivered {
		return unstreamed(func() string { return track })
	}
	if full {
		return nil
	}
	return unstreamed(sync.OnceValue(func() string {
		if !s.Sent(ctx) {
			return ""
		}
		return track
	}))
}

// The turn waits for the look for an earlier card.
const resumeTime = time.Second

// resume returns the open card that the reply will end, of an earlier attempt or of the wait for a slot. If there is
// none, or its delivery failed in this process, delivered is false and track is a new card's id.
func (c *Cards) resume(ctx context.Context, s chat.Shown) (track string, delivered bool) {
	one, stop := context.WithTimeout(ctx, resumeTime)
	defer stop()
	known, err := c.cfg.Store.OpenCardOf(one, s.Lease.Key, s.Tracks)
	if err != nil {
		return s.Tracks[0], false
	}
	c.opened.ContainsOrAdd(known.Track, openedCard{created: true, prepaid: known.Prepaid}) // this process may know more of it
	card, _ := c.opened.Get(known.Track)
	return known.Track, card.created
}

// The card of an unstreamed turn is created with its reply.
type unstreamed func() string

func (unstreamed) Text(string, bool) {}
func (unstreamed) Thought(string)    {}
func (unstreamed) Tool(string)       {}
func (unstreamed) Visible() bool     { return false }
func (u unstreamed) Stop() string    { return u() }

// pauseAfterFault follows a refusal for the template or a permission, pauseUndelivered a card that did not reach one
// conversation. Each attempt would cost a call.
const (
	pauseAfterFault  = 10 * time.Minute
	pauseUndelivered = time.Hour
)

func (c *Cards) isPaused(to sessions.Target) bool {
	until, _ := c.undelivered.Get(to.ConversationID)
	return time.Now().UnixNano() < c.pausedTo.Load() || time.Now().Before(until)
}

func (c *Cards) pause(ctx context.Context, to sessions.Target, err error) {
	if errors.Is(err, ErrUndelivered) {
		c.undelivered.Add(to.ConversationID, time.Now().Add(pauseUndelivered))
		zerolog.Ctx(ctx).Warn().Err(err).Str("conversation", string(to.ConversationID)).Dur("pause_ms", pauseUndelivered).
			Msg("DingTalk delivered no card to a conversation: its replies are Markdown for a while")
		return
	}
	c.pausedTo.Store(time.Now().Add(pauseAfterFault).UnixNano())
	zerolog.Ctx(ctx).Error().Err(err).Dur("pause_ms", pauseAfterFault).Msg("DingTalk refused a card: replies are Markdown for a while")
}

// Another card would stay unfinished after a refused update that would meet any card for a while.
func (c *Cards) pauseFor(ctx context.Context, to sessions.Target, err error) {
	if pauseOf(err) > longestPause && !calls.IsRefused(err) {
		c.pause(ctx, to, err)
	}
}

// An existing card was delivered by an earlier attempt.
func (c *Cards) create(ctx context.Context, to sessions.Target, track string, variables map[string]string, reserved calls.Reservation) error {
	err := c.cfg.API.CreateCard(ctx, to, New{Track: track, Template: c.cfg.Template, Variables: variables, Reserved: reserved})
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
