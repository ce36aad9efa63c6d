package upkeep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
	"unicode"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"ebb/bot/parts"
	"ebb/bot/view"
	"ebb/compaction"
	"ebb/compaction/summarize"
	"ebb/memory"
	"ebb/sessions"
	"ebb/sessions/guard"
	"ebb/sessions/llm"
	"ebb/sessions/periodic"
)

const (
	digestInterval  = time.Minute // between two checks for due days
	digestsAtOnce   = 4           // digests of one day that are written concurrently
	digestPage      = 500         // events of a page
	digestTokens    = 800         // requested length
	maxDigestTokens = 1100
	minDigestTokens = 150 // requested length for a quiet day
)

// digester writes the digests of days.
type digester struct {
	shared    *parts.Shared
	views     *view.Builder
	sessions  Sessions
	store     Digests
	summaries summaries
	slots     *semaphore.Weighted
	marker    marker
	accuser   accuser
	charger   charger
	stats     Stats
	at        string // time of day
}

// writeDigests takes the oldest day first. A failed day does not delay later ones.
func (w digester) writeDigests(ctx context.Context) error {
	hour, minute, err := memory.ClockOf(w.at)
	if err != nil {
		return err // New has refused such a time
	}
	days := memory.DaysEnded(w.shared.Now(), hour, minute, w.shared.Location)
	var after memory.DigestDue
	for w.shared.Leases.Trusted() && ctx.Err() == nil {
		due, err := w.store.DigestsDue(ctx, w.shared.Leases.Owner(), days, after)
		if err != nil || len(due) == 0 {
			return err
		}
		after = due[len(due)-1]
		for len(due) > 0 {
			n := 1
			for n < len(due) && due[n].Date == due[0].Date {
				n++
			}
			w.writeDayDigests(ctx, due[:n])
			due = due[n:]
		}
	}
	return nil
}

func (w digester) writeDayDigests(ctx context.Context, due []memory.DigestDue) {
	var g errgroup.Group
	g.SetLimit(digestsAtOnce)
	for _, d := range due {
		g.Go(func() error {
			guard.Run(ctx, guard.Session, func() { w.writeDigestLogged(ctx, d) })
			return nil
		})
	}
	_ = g.Wait() // its functions return no errors
}

func (w digester) writeDigestLogged(ctx context.Context, d memory.DigestDue) {
	if ctx.Err() != nil || !w.shared.Leases.Trusted() {
		return
	}
	if err := w.slots.Acquire(ctx, 1); err != nil {
		return // the process stops
	}
	defer w.slots.Release(1)
	log := zerolog.Ctx(ctx).With().EmbedObject(d.Key).Str("day", d.Date).Logger()
	err := w.shared.Leases.Do(ctx, d.Key, func(l sessions.Lease) error { // before the first read: an erasure ends the term
		log := log.With().Int64("term", l.Term).Logger()
		return w.writeDigest(log.WithContext(ctx), l, d)
	})
	if err != nil && !errors.Is(err, sessions.ErrLeaseHeld) && !errors.Is(err, sessions.ErrNotFound) { // otherwise another replica has the session, or it was deleted
		periodic.LogFailure(log.WithContext(ctx), err, "Daily digest failed")
	}
}

// writeDigest does nothing if the session's budget is spent. A failure is stored with its reason and retried, up to
// [memory.DigestAttempts] times.
func (w digester) writeDigest(ctx context.Context, lease sessions.Lease, d memory.DigestDue) error {
	s, err := w.sessions.Session(ctx, d.Key)
	if err != nil {
		return err
	}
	if lowBudgetSpent(w.views.Choices.Settings(s), s) {
		return w.store.PutOffDigest(ctx, lease, memory.DigestFailure{Date: d.Date, Reason: "daily budget is used up"})
	}
	end, err := w.marker.begin(ctx, lease)
	if err != nil {
		return err
	}
	defer end()
	digest, err := w.summarizeDay(ctx, lease, s, d)
	spent := sessions.Spending{Kind: sessions.SpentDigest, Usage: digest.Usage, Cost: digest.Cost, Model: digest.Model}
	if err != nil && ctx.Err() != nil { // interrupted, not failed: the next process writes the digest
		w.charger.charge(ctx, d.Key, spent)
		return context.Cause(ctx)
	}
	one, stop := context.WithTimeout(context.WithoutCancel(ctx), w.shared.CommitTimeout)
	defer stop()
	if err != nil {
		err = w.putOffFailed(one, lease, d, digest, err)
	} else {
		err = w.storeDigest(one, lease, digest)
	}
	if sessions.IsFinal(err) { // the row with the usage was not written
		w.charger.charge(ctx, d.Key, spent)
	}
	if errors.Is(err, sessions.ErrConflict) { // another process was faster
		return nil
	}
	return err
}

func (w digester) putOffFailed(ctx context.Context, l sessions.Lease, d memory.DigestDue, digest memory.Digest, cause error) error {
	w.stats.DigestEnded(DigestFailed)
	periodic.LogFailure(ctx, cause, "Daily digest failed; it is retried later")
	reason := digestFailureReason(cause)
	if d.Attempts+1 >= memory.DigestAttempts {
		zerolog.Ctx(ctx).Warn().Str("reason", reason).Int("attempts", d.Attempts+1).Msg("Daily digest given up")
	}
	return w.store.PutOffDigest(ctx, l, memory.DigestFailure{
		Date: d.Date, Reason: reason, Counts: true, Usage: digest.Usage, Cost: digest.Cost, Model: digest.Model,
	})
}

func (w digester) storeDigest(ctx context.Context, l sessions.Lease, digest memory.Digest) error {
	id, err := w.store.StoreDigest(ctx, l, digest)
	switch {
	case err != nil:
		return err
	case id == 0:
		w.stats.DigestEnded(DigestNothing)
		return nil
	}
	w.stats.DigestEnded(DigestWritten)
	zerolog.Ctx(ctx).Info().Int64("memory", id).Int("tokens", w.shared.Counter.Count(digest.Content)).Msg("Daily digest written")
	return nil
}

// summarizeDay leaves out commands and their answers. A digest without content means that nothing else was said. With
// an error it holds the usage.
func (w digester) summarizeDay(ctx context.Context, l sessions.Lease, s sessions.Session, d memory.DigestDue) (digest memory.Digest, err error) {
	defer func() {
		if p := recover(); p != nil {
			zerolog.Ctx(ctx).Error().Str("stack", string(debug.Stack())).Interface("panic", p).Msg("Digest panicked")
			err = errDigestPanic
		}
	}()
	digest = memory.Digest{Date: d.Date, SourceGroup: memory.GroupID(s.RobotCode, s.ConversationID)}
	digest.Scope, digest.ScopeID = memory.DigestScope(s)
	events, err := w.readDay(ctx, d)
	if err != nil || countUserMessages(events) < memory.DigestLeast {
		return digest, err
	}
	first, last := events[0], events[len(events)-1]
	digest.StartSeq, digest.EndSeq, digest.At = first.Seq, last.Seq, last.CreatedAt
	for _, e := range events { // an answer may be later than the next day's first question
		digest.At = maxTime(digest.At, e.CreatedAt)
	}
	summarizer := w.summaries.of(s.Key)
	summarizer.Kind = llm.KindDigest
	summarizer.Language = cmp.Or(w.shared.Current.Language(s.ConversationID), languageOfDay(events, summarizer.Language))
	size := compaction.TokensOf(events)
	parts := 1 + size/max(1, summarizer.Context/4)
	ctx, stop := context.WithTimeout(ctx, time.Duration(parts)*w.shared.CompactDeadline)
	defer stop()
	r := summarize.Request{
		Events: events, Target: min(digestTokens, max(minDigestTokens, size/4)), MaxTokens: maxDigestTokens, Profile: compaction.ProfileDay,
	}
	res, err := summarizer.Summarize(ctx, r)
	if err != nil && w.accuser.accuse(ctx, l, s, err, nil, events) {
		lost := res
		r.Events = sessions.Readable(events, w.accuser.reads(s.Key))
		res, err = summarizer.Summarize(ctx, r)
		res.Usage, res.Cost = res.Usage.Add(lost.Usage), res.Cost+lost.Cost
	}
	digest.Usage, digest.Cost, digest.Model = res.Usage, res.Cost, res.Model
	if err != nil {
		return digest, fmt.Errorf("ask for a digest: %w", err)
	}
	if body := memory.DigestBody(res.Text); body != "" {
		digest.Content = memory.DigestTitle(d.Day, summarizer.Language) + "\n" + body
	}
	return digest, nil
}

func (w digester) readDay(ctx context.Context, d memory.DigestDue) ([]sessions.Event, error) {
	var all []sessions.Event
	for after := int64(0); ; {
		page, err := w.store.DigestEvents(ctx, d, after, digestPage)
		if err != nil {
			return nil, fmt.Errorf("read the day: %w", err)
		}
		if all = append(all, page...); len(page) < digestPage {
			return w.accuser.readable(d.Key, all), nil
		}
		after = page[len(page)-1].Seq
	}
}

var errDigestPanic = errors.New("digest panicked")

func digestFailureReason(err error) string {
	_, model := errors.AsType[*llm.CallError](err)
	switch {
	case errors.Is(err, errDigestPanic):
		return errDigestPanic.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "ran out of time"
	case model:
		return "model error: " + string(llm.ClassOf(err))
	}
	return "no usable answer"
}

func countUserMessages(events []sessions.Event) int {
	n := 0
	for _, e := range events {
		if e.Role == sessions.RoleUser {
			n++
		}
	}
	return n
}

func languageOfDay(events []sessions.Event, configured string) string {
	n := 0
	for _, e := range events {
		if e.Role != sessions.RoleUser {
			continue
		}
		han, latin := 0, 0
		for _, r := range e.Content {
			if unicode.Is(unicode.Han, r) {
				han++
			} else if unicode.Is(unicode.Latin, r) {
				latin++
			}
		}
		switch { // a Latin word is about four letters long
		case han*4 > latin:
			n++
		case latin > 0:
			n--
		}
	}
	switch {
	case n > 0:
		return "zh"
	case n < 0:
		return "en"
	}
	return configured
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
