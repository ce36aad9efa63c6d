package card

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/calls"
	"ebb/sessions"
	"ebb/sessions/guard"
	"ebb/sessions/retry"
)

// live streams one turn onto its card. One goroutine makes all calls.
type live struct {
	cards  *Cards
	shown  chat.Shown
	status string // text of the card when it is opened
	waits  bool   // The turn waits for a slot, and opens the card itself after a failure.
	shows  string // card with a call that is recorded as under way; empty: none
	late   bool   // the last of these calls may still change it
	cancel context.CancelFunc
	done   chan struct{} // closed after the last call
	ending chan struct{} // closed by Stop
	ended  sync.Once
	news   chan struct{} // the text or the status changed

	mu    sync.Mutex
	text  []byte
	full  string // frame of a text beyond one card, which does not change any more
	turns int    // resets of the text
	idea  []byte // end of the reasoning; empty while the model writes
	tool  string // running tool; empty: the model writes
	track string // card of the reply; empty: none was delivered
}

func (c *Cards) stream(ctx context.Context, s chat.Shown) *live {
	c.streaming.Add(1)
	return c.display(ctx, s, status(s.Lang, ""), func(ctx context.Context, l *live) {
		defer c.streaming.Add(-1)
		if l.open(ctx) {
			l.updates(ctx)
		}
	})
}

// A call outlives its turn, so that its outcome is known: Stop bounds it. The storage refuses calls after the end of the term.
func (c *Cards) display(ctx context.Context, s chat.Shown, status string, show func(context.Context, *live)) *live {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l := &live{cards: c, shown: s, status: status, cancel: cancel, done: make(chan struct{}), ending: make(chan struct{}), news: make(chan struct{}, 1)}
	go func() {
		defer close(l.done)
		defer l.endFrames(ctx)
		guard.Run(ctx, guard.Card, func() { show(ctx, l) }) // after a panic the reply ends the card, or the background does
	}()
	return l
}

// Text implements [chat.Live].
func (l *live) Text(text string, reset bool) {
	l.mu.Lock()
	if reset {
		l.text, l.full = l.text[:0], ""
		l.turns++
	}
	l.text, l.idea, l.tool = append(l.text, text...), nil, ""
	l.mu.Unlock()
	l.changed()
}

// Thought implements [chat.Live].
func (l *live) Thought(text string) {
	if !l.cards.cfg.Thoughts {
		return
	}
	l.mu.Lock()
	l.idea, l.tool = append(l.idea, text...), ""
	if n := len(l.idea) - keptThought; n > keptThought { // not with each piece
		l.idea = append(l.idea[:0], l.idea[n:]...)
	}
	l.mu.Unlock()
	l.changed()
}

// Tool implements [chat.Live].
func (l *live) Tool(name string) {
	l.mu.Lock()
	l.idea, l.tool = nil, name
	l.mu.Unlock()
	l.changed()
}

func (l *live) changed() {
	select {
	case l.news <- struct{}{}:
	default:
	}
}

// Stop gives a call under way this time, which is more than it has: one that is broken off may still take effect.
const lastCall = frameTime + time.Second/2

// Stop implements [chat.Live].
func (l *live) Stop() string {
	l.ended.Do(func() { close(l.ending) })
	timeout := time.AfterFunc(lastCall, l.cancel)
	<-l.done
	timeout.Stop()
	l.cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.track
}

// Visible implements [chat.Live].
func (l *live) Visible() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.track != ""
}

// A card whose delivery is uncertain is tried again.
const openTries = 2

// An answer that is there before openAfter is on a card of two calls, which its reply creates. One that is there before firstFrame later
// takes no update. Both are at most the time between two updates.
const (
	openAfter  = 250 * time.Millisecond
	firstFrame = 500 * time.Millisecond
)

// endsWithin reports whether the turn ends within a time.
func (l *live) endsWithin(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-l.ending:
		return true
	case <-ctx.Done():
		return true
	case <-timer.C:
		return false
	}
}

// open reports whether the card can be streamed.
func (l *live) open(ctx context.Context) bool {
	log := zerolog.Ctx(ctx)
	track, delivered := l.cards.resume(ctx, l.shown)
	if delivered {
		l.deliveredAs(track)
		l.changed() // it may show that the turn waits, or words of a turn that was killed
		return l.shown.Sent(ctx)
	}
	if !l.waits && l.endsWithin(ctx, min(l.cards.cfg.Interval, openAfter)) {
		if l.shown.Sent(ctx) {
			l.deliveredAs(track) // by its reply
		}
		return false
	}
	if !l.shown.Sent(ctx) {
		log.Debug().Msg("Card not opened before earlier replies, the reply is Markdown")
		return false
	}
	reserved, err := l.cards.cfg.Governor.Reserve(ctx, calls.Card, calls.CardCreate, calls.CardStream)
	if err != nil {
		if !calls.IsRefused(err) {
			log.Warn().Err(err).Msg("Calls of a card not reserved, the reply is Markdown")
		}
		return false
	}
	state, known, err := l.cards.cfg.Store.OpenCard(ctx, l.shown.Lease, sessions.Card{Kind: sessions.ReplyCard, Track: track, EventID: l.shown.Asked[0].ID, TextKey: l.cards.cfg.Key}, 0)
	if err == nil && known && state == sessions.CardOpen { // not delivered during the wait
		err = l.cards.setPrepaid(ctx, l.shown.Lease.Key, track, true)
	}
	if err != nil || state != sessions.CardOpen {
		log.Debug().Err(err).Str("state", string(state)).Msg("Card not opened, the reply is Markdown")
		l.cards.giveBack(ctx, reserved, calls.CardCreate)
		if err == nil || errors.Is(err, sessions.ErrLeaseLost) { // Otherwise it may be recorded, with a prepaid end.
			l.cards.giveBack(ctx, reserved, calls.CardStream)
		}
		return false
	}
	maybe := false // an attempt may have delivered it
	for try, counted := 1, reserved; ; try++ {
		err = l.deliver(ctx, track, counted)
		maybe = maybe || mayHaveArrived(err)
		if err == nil || isPermanent(err) || isSilent(err) || try == openTries || !retry.Sleep(ctx, time.Second/4) || !l.begins(ctx, track) {
			break
		}
		var refused error
		if counted, refused = l.cards.cfg.Governor.Reserve(ctx, calls.Finish, calls.CardCreate); refused != nil {
			break
		}
	}
	if err != nil && !maybe && ctx.Err() == nil {
		l.notDelivered(ctx, track, reserved, err)
		return false
	}
	l.deliveredAs(track)
	l.cards.opened.Add(track, openedCard{created: true, prepaid: true, reserved: reserved}) // After an error it may exist: the reply finds out.
	return err == nil
}

// notDelivered settles a card that does not exist, or leaves it to the turn after the wait.
func (l *live) notDelivered(ctx context.Context, track string, reserved calls.Reservation, err error) {
	stored := false
	if l.waits && !isPermanent(err) {
		stored = l.cards.setPrepaid(ctx, l.shown.Lease.Key, track, false) == nil
		l.cards.opened.Add(track, openedCard{})
	} else {
		stored = l.cards.settle(ctx, l.shown.Lease.Key, track, sessions.CardFailed)
	}
	if stored {
		l.cards.giveBack(ctx, reserved, calls.CardStream)
	}
}

func (l *live) deliver(ctx context.Context, track string, counted calls.Reservation) error {
	one, stop := context.WithTimeout(ctx, frameTime)
	defer stop()
	err := l.cards.create(one, l.shown.Target, New{
		Track: track, Variables: map[string]string{l.cards.cfg.Key: l.status, varStop: yes, varFeedback: no}, Reserved: counted,
	})
	l.late = mayHaveArrived(err)
	return err
}

func (l *live) deliveredAs(track string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.track = track
}

// updates ends with the turn, the month's calls or a refused frame.
func (l *live) updates(ctx context.Context) {
	last, began := "", time.Now()
	if l.endsWithin(ctx, min(l.cards.cfg.Interval, firstFrame)) {
		return
	}
	for n := 1; ; n++ {
		select {
		case <-l.ending:
			return
		case <-ctx.Done():
			return
		case <-l.news:
		}
		text := l.frame()
		if text == last {
			continue
		}
		u := Update{Track: l.track, Key: l.cards.textKey(l.track), Text: text, ID: frameID(l.track, strconv.Itoa(n), text)}
		if !l.send(ctx, u) {
			return
		}
		last = text
		select {
		case <-l.ending:
			return
		case <-time.After(l.pace(time.Since(began))):
		}
	}
}

// A long answer needs no more updates than a short one, and all cards of all replicas share one API's rate.
const (
	updatesPerSecond = 15.0
	slowdown         = 0.15 // part of the turn's time between two updates
)

func (l *live) pace(elapsed time.Duration) time.Duration {
	shared := time.Duration(float64(l.cards.streaming.Load()) / (updatesPerSecond * l.cards.cfg.Governor.Share()) * float64(time.Second))
	return max(l.cards.cfg.Interval, shared, time.Duration(slowdown*float64(elapsed)))
}

// begins records a call that changes the card. It reports false without the lease: the next owner of the session may show or end the
// card. An erasure waits for recorded calls.
func (l *live) begins(ctx context.Context, track string) bool {
	one, stop := context.WithTimeout(ctx, beginTime)
	defer stop()
	err := l.cards.cfg.Store.BeginFrame(one, l.shown.Lease, track, l.cards.Carrier(track))
	if err == nil {
		l.shows, l.late = track, false
		return true
	}
	if errors.Is(err, sessions.ErrLeaseLost) {
		l.shown.Look()
	}
	zerolog.Ctx(ctx).Debug().Err(err).Msg("Card left as it is for now")
	return false
}

const (
	beginTime = time.Second
	// frameTime is below [sessions.FrameTime]: a call that is recorded before it begins is over by then.
	frameTime = 2500 * time.Millisecond
)

// endFrames keeps the record of a call that may still take effect. It is over some seconds later.
func (l *live) endFrames(ctx context.Context) {
	if l.shows == "" || l.late {
		return
	}
	one, stop := context.WithTimeout(context.WithoutCancel(ctx), beginTime)
	defer stop()
	if err := l.cards.cfg.Store.EndFrame(one, l.shown.Lease, l.shows); err != nil {
		zerolog.Ctx(ctx).Debug().Err(err).Msg("End of a card's updates not stored")
	}
}

// send reports whether other updates may follow. The next update makes up for a failed one.
func (l *live) send(ctx context.Context, u Update) bool {
	one, stop := context.WithTimeout(ctx, frameTime)
	defer stop()
	if !l.begins(one, u.Track) {
		return true
	}
	need := calls.Frame
	if l.cards.cfg.Stream == Always {
		need = calls.Card
	}
	var err error
	if u.Reserved, err = l.cards.cfg.Governor.Reserve(one, need, calls.CardStream); err == nil {
		err = l.cards.update(one, l.shown.Target.ConversationID, u)
	}
	l.late = mayHaveArrived(err)
	if err == nil {
		return true
	}
	if ctx.Err() == nil && !calls.IsRefused(err) {
		zerolog.Ctx(ctx).Debug().Err(err).Msg("Update of a card failed")
	}
	return ctx.Err() == nil && !isPermanent(err) && !isSilent(err)
}

// frame is the next update's text, with the turn's status below it. A text beyond one card is parsed once.
func (l *live) frame() string {
	l.mu.Lock()
	full, turns := l.full, l.turns
	if full != "" {
		l.mu.Unlock()
		return full
	}
	text, idea, tool := l.cards.cfg.Pictures.SafeOpen(string(l.text)), string(l.idea), l.tool
	l.mu.Unlock()
	pieces := Split(text, Limit)
	shown := ""
	switch {
	case len(pieces) > 1:
		full = Final(pieces[0]) + "\n\n" + status(l.shown.Lang, "")
		l.mu.Lock()
		defer l.mu.Unlock()
		if turns == l.turns {
			l.full = full
		}
		return full
	case len(pieces) == 1:
		shown = Frame(pieces[0])
	}
	if idea != "" {
		shown = joinBlocks(shown, thought(idea))
	}
	if shown == "" || tool != "" || idea != "" {
		return joinBlocks(shown, status(l.shown.Lang, tool))
	}
	return shown
}

func joinBlocks(above, below string) string {
	if above == "" || below == "" {
		return above + below
	}
	return above + "\n\n" + below
}
