package upkeep

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
	"unicode"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"ebb/bot/llm"
	"ebb/bot/periodic"
	"ebb/compaction"
	"ebb/compaction/summarize"
	"ebb/memory"
	"ebb/sessions"
)

// Limits of digests.
const (
	digestEvery   = time.Minute // between two looks for days to tell
	DigestsAtOnce = 4           // days that are told side by side
	digestPage    = 500         // events read at a time
	digestTokens  = 800         // what a digest takes, about
	digestMost    = 1100        // and at the most
	digestLeast   = 150         // what is asked for on a day of few words
)

// Digests has each day of each group told once, from the time of day that is configured: a group's history by days,
// beside what its conversation needs. It begins with the days that ended while no process ran. Nobody waits for it. It
// ends with ctx.
func (u *Worker) Digests(ctx context.Context) {
	if u.cfg.DigestAt == "" {
		return
	}
	hour, minute, err := memory.ClockOf(u.cfg.DigestAt)
	if err != nil {
		periodic.LogFailure(ctx, err, "No daily digests") // New has refused such a time
		return
	}
	t := time.NewTicker(digestEvery)
	defer t.Stop()
	for {
		days := memory.DaysEnded(u.now(), hour, minute, u.cfg.Location)
		u.digestDays(ctx, days)
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// digestDays tells the days that are due, the oldest first, a few of one day side by side. What comes to nothing does not
// hold up what is behind it.
func (u *Worker) digestDays(ctx context.Context, days []memory.Day) {
	var after memory.DigestDue
	for u.leases.Trusted() && ctx.Err() == nil {
		due, err := u.memory.DigestsDue(ctx, u.leases.Owner(), days, after)
		if err != nil {
			periodic.LogFailure(ctx, err, "Days to tell could not be listed")
			return
		}
		if len(due) == 0 {
			return
		}
		after = due[len(due)-1]
		for len(due) > 0 {
			n := 1
			for n < len(due) && due[n].Date == due[0].Date {
				n++
			}
			u.digestDay(ctx, due[:n])
			due = due[n:]
		}
	}
}

// digestDay tells one day of several groups.
func (u *Worker) digestDay(ctx context.Context, due []memory.DigestDue) {
	var g errgroup.Group
	g.SetLimit(DigestsAtOnce)
	for _, d := range due {
		g.Go(func() error {
			u.digestLogged(ctx, d)
			return nil
		})
	}
	_ = g.Wait() // its functions return no errors
}

// digestLogged tells one day unless the bot stops, and logs what went wrong: nobody waits for it.
func (u *Worker) digestLogged(ctx context.Context, d memory.DigestDue) {
	if ctx.Err() != nil || !u.leases.Trusted() {
		return
	}
	if err := u.digest(ctx, d); err != nil {
		periodic.LogFailure(ctx, fmt.Errorf("tell %s of session %s: %w", d.Date, d.Key, u.leases.Check(d.Key, err)), "Daily digest did not come through")
	}
}

// digest tells one day, unless it is not ours to tell or the session may spend no more of that kind today. What fails is
// kept with its reason, and tried again later, up to [memory.DigestAttempts] times.
func (u *Worker) digest(ctx context.Context, d memory.DigestDue) error {
	if err := u.spare.Acquire(ctx, 1); err != nil {
		return nil // the bot stops
	}
	defer u.spare.Release(1)
	lease, err := u.leases.Get(ctx, d.Key) // before anything is read: after an erasure it is lost
	if errors.Is(err, sessions.ErrLeaseHeld) || errors.Is(err, sessions.ErrNotFound) {
		return err
	}
	if err != nil {
		return fmt.Errorf("take lease: %w", err)
	}
	log := zerolog.Ctx(ctx).With().EmbedObject(d.Key).Int64("term", lease.Term).Str("day", d.Date).Logger()
	ctx = log.WithContext(ctx)
	s, err := u.store.Session(ctx, d.Key)
	if err != nil {
		return fmt.Errorf("read session: %w", err)
	}
	if spentLow(u.views.Settings(s), s) {
		return u.memory.PutOffDigest(ctx, lease, memory.DigestFailure{Date: d.Date, Reason: "daily budget is used up"})
	}
	made, err := u.tellDay(ctx, s, d)
	defer func() {
		if ctx.Err() != nil || sessions.IsFinal(err) {
			u.Charge(ctx, d.Key, sessions.Spending{Kind: sessions.SpentDigest, Usage: made.Usage, Cost: made.Cost})
		}
	}()
	if ctx.Err() != nil {
		return context.Cause(ctx) // cut off, not failed: the next process tells the day
	}
	if err != nil {
		u.stats.DigestEnded("failed")
		periodic.LogFailure(ctx, err, "Day could not be told, it rests")
		if d.Attempts+1 >= memory.DigestAttempts {
			log.Warn().Str("reason", digestTrouble(err)).Int("attempts", d.Attempts+1).Msg("Daily digest given up")
		}
		return u.memory.PutOffDigest(ctx, lease, memory.DigestFailure{Date: d.Date, Reason: digestTrouble(err), Counts: true, Usage: made.Usage, Cost: made.Cost})
	}
	id, err := u.memory.StoreDigest(ctx, lease, made)
	switch {
	case errors.Is(err, sessions.ErrConflict): // another process was faster
		return nil
	case err != nil:
		return err
	case id == 0:
		u.stats.DigestEnded("nothing")
		return nil
	}
	u.stats.DigestEnded("written")
	log.Info().Int64("memory", id).Int("tokens", u.counter.Count(made.Content)).Msg("Daily digest written")
	return nil
}

// tellDay asks the model for a digest of a day. Commands and their answers are no part of it; one without content says
// that nothing else was said. With an error it holds what was spent.
func (u *Worker) tellDay(ctx context.Context, s sessions.Session, d memory.DigestDue) (made memory.Digest, err error) {
	defer func() {
		if p := recover(); p != nil {
			zerolog.Ctx(ctx).Error().Str("stack", string(debug.Stack())).Interface("panic", p).Msg("Digest panicked")
			err = errDigestPanic
		}
	}()
	made = memory.Digest{Date: d.Date, SourceGroup: memory.GroupID(s.RobotCode, s.ConversationID)}
	made.Scope, made.ScopeID = memory.DigestScope(s)
	events, err := u.dayEvents(ctx, d)
	if err != nil || People(events) < memory.DigestLeast {
		return made, err
	}
	first, last := events[0], events[len(events)-1]
	made.StartSeq, made.EndSeq, made.At = first.Seq, last.Seq, last.CreatedAt
	for _, e := range events { // an answer may be as late as the next day's questions are early
		made.At = maxTime(made.At, e.CreatedAt)
	}
	teller := *u.engine.Summarizer
	teller.Model = llm.Plain{Model: u.model, Kind: llm.KindDigest}
	teller.Language = LanguageOfDay(events, u.cfg.Language)
	size := compaction.TokensOf(events)
	parts := 1 + size/max(1, teller.Context/4)
	ctx, stop := context.WithTimeout(ctx, time.Duration(parts)*u.cfg.CompactDeadline)
	defer stop()
	res, err := teller.Summarize(ctx, summarize.Request{
		Events: events, Target: min(digestTokens, max(digestLeast, size/4)), MaxTokens: digestMost, Profile: compaction.ProfileDay,
	})
	made.Usage, made.Cost = res.Usage, res.Cost
	if err != nil {
		return made, fmt.Errorf("ask for a digest: %w", err)
	}
	if body := memory.DigestBody(res.Text); body != "" {
		made.Content = memory.DigestTitle(d.Day, teller.Language) + "\n" + body
	}
	return made, nil
}

// dayEvents reads what was said on a day, without commands.
func (u *Worker) dayEvents(ctx context.Context, d memory.DigestDue) ([]sessions.Event, error) {
	var all []sessions.Event
	for after := int64(0); ; {
		page, err := u.memory.DigestEvents(ctx, d, after, digestPage)
		if err != nil {
			return nil, fmt.Errorf("read the day: %w", err)
		}
		if all = append(all, page...); len(page) < digestPage {
			return u.views.WithoutCommands(all), nil
		}
		after = page[len(page)-1].Seq
	}
}

var errDigestPanic = errors.New("digest panicked")

// digestTrouble is why a day was not told, in words that may stand in a table: never the provider's own.
func digestTrouble(err error) string {
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

// People counts the messages that people sent.
func People(events []sessions.Event) int {
	n := 0
	for _, e := range events {
		if e.Role == sessions.RoleUser {
			n++
		}
	}
	return n
}

// LanguageOfDay is the language that most messages of people are in: a digest is read by those who talked.
func LanguageOfDay(events []sessions.Event, configured string) string {
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
		switch { // a word of Latin letters is about as long as four of them
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
