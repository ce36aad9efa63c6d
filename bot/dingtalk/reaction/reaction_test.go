package reaction

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/calls"
	"ebb/sessions"
	"ebb/sessions/periodic"
	"ebb/sessions/retry"
)

// fakeDingTalk has the marks, and fails as its scripts say; a script that ended fails no more.
type fakeDingTalk struct {
	t interface{ Errorf(string, ...any) }

	mu             sync.Mutex
	marks          map[sessions.MessageID]bool
	set, removed   int // calls
	onSet, onErase []error
	slow           time.Duration // time of each call that sets a mark
	frozen         time.Duration // the caller stands still before its call arrives, and looks at no deadline
}

// lost is the error of a call that took effect and whose answer was lost.
var lost = &chat.SendError{Maybe: true, Err: errors.New("lost")}

func next(script *[]error) (err error) {
	if len(*script) > 0 {
		err, *script = (*script)[0], (*script)[1:]
	}
	return err
}

func (d *fakeDingTalk) SetReaction(ctx context.Context, m Mark) error {
	time.Sleep(d.frozen)
	inTime := retry.Sleep(ctx, d.slow)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.set++
	err := next(&d.onSet)
	if !inTime { // the caller does not learn the outcome
		err = lost
	}
	if err == nil || errors.Is(err, lost) {
		if d.marks[m.Message] {
			d.t.Errorf("two marks on %s", m.Message)
		}
		d.marks[m.Message] = true
	}
	return err
}

func (d *fakeDingTalk) RemoveReaction(_ context.Context, m Mark) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.removed++
	err := next(&d.onErase)
	if err == nil || errors.Is(err, lost) {
		delete(d.marks, m.Message)
	}
	return err
}

func (d *fakeDingTalk) left() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.marks)
}

// sets and removals count the calls.
func (d *fakeDingTalk) sets() int     { return d.count(&d.set) }
func (d *fakeDingTalk) removals() int { return d.count(&d.removed) }

func (d *fakeDingTalk) count(n *int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return *n
}

// fakeRows are the rows of marks.
type fakeRows struct {
	sessions.Cards
	mu       sync.Mutex
	rows     map[string]*fakeRow
	answered map[int64]bool
}

type fakeRow struct {
	sessions.Card
	state sessions.CardState
	next  time.Time
}

func (s *fakeRows) OpenCard(_ context.Context, l sessions.Lease, c sessions.Card, hold time.Duration) (sessions.CardState, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row, known := s.rows[c.Track]
	if !known {
		c.Key, c.Prepaid = l.Key, true
		row = &fakeRow{c, sessions.CardOpen, time.Now().Add(hold)}
		s.rows[c.Track] = row
	}
	return row.state, known, nil
}

func (s *fakeRows) SettleCard(_ context.Context, _ sessions.Key, track string, state sessions.CardState) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.rows[track]
	if state == sessions.CardOpen && row.state != sessions.CardOpen {
		row.state, row.Tries, row.Prepaid = state, 0, false
	}
	if row.state == sessions.CardOpen {
		row.state, row.next = state, time.Now()
	}
	return nil
}

func (s *fakeRows) AbandonedCards(_ context.Context, kind sessions.CardKind, retry time.Duration, limit int) ([]sessions.Card, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []sessions.Card
	for _, row := range s.rows {
		if row.Kind == kind && row.state == sessions.CardOpen && s.answered[row.EventID] && !row.next.After(time.Now()) && len(out) < limit {
			row.next, row.Tries = time.Now().Add(retry), row.Tries+1
			out = append(out, row.Card)
		}
	}
	return out, nil
}

func (s *fakeRows) PostponeCard(_ context.Context, c sessions.Card, pause time.Duration, made bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.rows[c.Track]
	row.next = time.Now().Add(pause)
	if made {
		row.Prepaid = false
	} else {
		row.Tries--
	}
	return nil
}

func (s *fakeRows) answer(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answered[id] = true
}

func (s *fakeRows) open() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, row := range s.rows {
		if row.state == sessions.CardOpen {
			n++
		}
	}
	return n
}

type fixture struct {
	*Reactions
	ding     *fakeDingTalk
	rows     *fakeRows
	months   calls.Store
	governor *calls.Governor
	ctx      context.Context
}

// play runs a test in a bubble, with the task that removes marks.
func play(t *testing.T, quota int64, test func(f *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{
			ding:   &fakeDingTalk{t: t, marks: map[sessions.MessageID]bool{}},
			rows:   &fakeRows{rows: map[string]*fakeRow{}, answered: map[int64]bool{}},
			months: calls.NewMemory(),
		}
		f.governor = calls.New(calls.Options{Store: f.months, Quota: quota})
		var stop func()
		f.ctx, stop = context.WithCancel(t.Context())
		f.Reactions = f.replica()
		go periodic.Run(f.ctx, f.Task(true))
		test(f)
		stop()
		synctest.Wait()
	})
}

func (f *fixture) replica() *Reactions {
	return New(Config{API: f.ding, Store: f.rows, Governor: f.governor, Language: func(sessions.ConversationID) string { return "zh" }})
}

// asked acknowledges a message.
func (f *fixture) asked(r *Reactions, id int64) { f.askedIn(r, "c1", id) }

func (f *fixture) askedIn(r *Reactions, c sessions.ConversationID, id int64) {
	e := sessions.Event{ID: id, MsgID: sessions.MessageID(fmt.Sprint("m", id)), Message: &sessions.Message{}}
	r.Acknowledge(f.ctx, sessions.Lease{Key: sessions.NewKey("robot", c, "")}, e)
}

func (f *fixture) made() int64 { return f.governor.Status().Calls }

// A mark is set once for a message, by whatever process, and stays until the message is answered.
func TestMarkStaysUntilAnswered(t *testing.T) {
	t.Parallel()
	play(t, 100, func(f *fixture) {
		f.asked(f.Reactions, 1)
		f.asked(f.Reactions, 1)
		f.asked(f.replica(), 1)
		<-time.After(time.Hour) // on the clock of the bubble
		if f.ding.left() != 1 || f.ding.sets() != 1 || f.made() != 2 {
			t.Errorf("%d marks by %d calls, %d counted", f.ding.left(), f.ding.sets(), f.made())
		}
		f.rows.answer(1)
		<-time.After(2 * removeEvery)
		if f.ding.left() != 0 || f.rows.open() != 0 || f.made() != 2 {
			t.Errorf("%d marks remain, %d rows, %d calls counted", f.ding.left(), f.rows.open(), f.made())
		}
	})
}

// A mark that is set late is removed all the same: the removal does not overtake it.
func TestRemovalWaitsForTheMark(t *testing.T) {
	t.Parallel()
	play(t, 100, func(f *fixture) {
		f.ding.slow = setTime - time.Second
		f.rows.answer(1)
		f.asked(f.Reactions, 1)
		<-time.After(setTime + 2*removeEvery)
		if f.ding.sets() != 1 || f.ding.left() != 0 || f.ding.removals() != 1 {
			t.Errorf("%d marks remain after %d removals", f.ding.left(), f.ding.removals())
		}
	})
}

// The call of a process that stood still comes after the removal by another one: the mark is removed again.
func TestMarkAfterItsRemoval(t *testing.T) {
	t.Parallel()
	play(t, 100, func(f *fixture) {
		f.ding.frozen = hold + 4*removeEvery
		f.rows.answer(1)
		f.asked(f.Reactions, 1)
		<-time.After(f.ding.frozen - removeEvery)
		if f.ding.sets() != 0 || f.ding.removals() != 1 {
			t.Errorf("%d marks by %d calls after %d removals", f.ding.left(), f.ding.sets(), f.ding.removals())
		}
		<-time.After(3 * removeEvery)
		if f.ding.sets() != 1 || f.ding.left() != 0 || f.rows.open() != 0 || f.made() != 3 {
			t.Errorf("%d marks remain after %d removals, %d rows, %d calls counted", f.ding.left(), f.ding.removals(), f.rows.open(), f.made())
		}
	})
}

// Attempts are few, calls that were not needed are returned, and a refusal stops marks for a while.
func TestMarkNotSet(t *testing.T) {
	t.Parallel()
	fails := &chat.SendError{Err: errors.New("system.err")}
	refused := &chat.SendError{Permanent: true, Err: errors.New("permission")}
	for name, tt := range map[string]struct {
		script   []error
		set      int   // calls
		counted  int64 // before the message is answered
		marks    int
		nextMark int // marks after another message
	}{
		"too soon":      {[]error{fails, fails}, 3, 4, 1, 2},
		"never":         {[]error{fails, fails, fails}, 3, 3, 0, 1},
		"refused":       {[]error{refused}, 1, 1, 0, 0},
		"a lost answer": {[]error{lost}, 1, 2, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, 1000, func(f *fixture) {
				f.ding.onSet = tt.script
				f.asked(f.Reactions, 1)
				<-time.After(setTime)
				if f.ding.sets() != tt.set || f.made() != tt.counted || f.ding.left() != tt.marks {
					t.Errorf("%d marks by %d calls, %d counted", f.ding.left(), f.ding.sets(), f.made())
				}
				f.asked(f.Reactions, 2)
				<-time.After(setTime)
				if f.ding.left() != tt.nextMark {
					t.Errorf("%d marks after another message", f.ding.left())
				}
				f.rows.answer(1)
				f.rows.answer(2)
				<-time.After(removeEvery + hold)
				if f.ding.left() != 0 || f.rows.open() != 0 {
					t.Errorf("%d marks remain, %d rows", f.ding.left(), f.rows.open())
				}
			})
		})
	}
}

// A refusal and a silence pause the marks of their conversation alone. A failure of the application, and silence in two conversations,
// pause those of all.
func TestPausesOfMarks(t *testing.T) {
	t.Parallel()
	refused := &chat.SendError{Permanent: true, Err: errors.New("param.userIdNotExist")}
	silent := &chat.SendError{Maybe: true, Silent: true, Err: context.DeadlineExceeded}
	for name, tt := range map[string]struct {
		script      []error
		another, in int // calls that set a mark in another conversation, and in a third one
	}{
		"a refusal":         {[]error{refused}, 1, 1},
		"an unknown code":   {[]error{&chat.SendError{Refused: true, Err: errors.New("odd")}}, 1, 1},
		"a permission":      {[]error{&chat.SendError{Permanent: true, Account: true, Err: errors.New("permission")}}, 0, 0},
		"one silence":       {[]error{silent}, 1, 1},
		"a second silence":  {[]error{silent, silent}, 1, 0},
		"two conversations": {[]error{refused, refused}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, 1000, func(f *fixture) {
				f.ding.onSet = tt.script
				made := func(c sessions.ConversationID, id int64) int {
					before := f.ding.sets()
					f.askedIn(f.Reactions, c, id)
					<-time.After(setTime)
					return f.ding.sets() - before
				}
				if n := made("c1", 1); n != 1 {
					t.Errorf("%d calls for the first message", n)
				}
				if n := made("c1", 2); n != 0 {
					t.Errorf("%d more calls in the conversation", n)
				}
				if n := made("c2", 3); n != tt.another {
					t.Errorf("%d calls in another one, want %d", n, tt.another)
				}
				if n := made("c3", 4); n != tt.in {
					t.Errorf("%d calls in a third one, want %d", n, tt.in)
				}
			})
		})
	}
}

// In a month with few calls no mark is set, and those that are set are removed.
func TestNoMarksNearTheEndOfTheMonth(t *testing.T) {
	t.Parallel()
	play(t, 20, func(f *fixture) {
		for id := range int64(20) {
			f.asked(f.Reactions, id)
		}
		<-time.After(setTime)
		for id := range int64(20) {
			f.rows.answer(id)
		}
		<-time.After(2 * removeEvery)
		if f.ding.sets() != 7 || f.made() != 14 || f.ding.left() != 0 {
			t.Errorf("%d marks were set, %d calls counted, %d marks remain", f.ding.sets(), f.made(), f.ding.left())
		}
	})
}

// A mark that can't be removed takes a bounded number of calls.
func TestRemovalIsGivenUp(t *testing.T) {
	t.Parallel()
	play(t, 0, func(f *fixture) {
		for range 100 {
			f.ding.onErase = append(f.ding.onErase, &chat.SendError{Err: errors.New("system.err")})
		}
		f.asked(f.Reactions, 1)
		f.rows.answer(1)
		<-time.After(24 * time.Hour)
		if f.ding.removals() != maxRemovals || f.rows.open() != 0 {
			t.Errorf("%d removals, %d rows are open", f.ding.removals(), f.rows.open())
		}
	})
}

// A mark that stays because DingTalk refuses the month's calls is removed within seconds of their return. A changed number of
// calls begins the month again, as an operator's word does.
func TestRemovalGoesOnWithTheMonth(t *testing.T) {
	t.Parallel()
	play(t, 100, func(f *fixture) {
		f.asked(f.Reactions, 1)
		time.Sleep(setTime)
		if err := f.governor.Exhaust(f.ctx, time.Hour); err != nil {
			t.Fatal(err)
		}
		f.ding.mu.Lock()
		f.ding.onErase = []error{&calls.RefusedError{Level: calls.Spent}} // the prepaid call
		f.ding.mu.Unlock()
		f.rows.answer(1)
		time.Sleep(20 * time.Minute)
		if f.ding.left() != 1 || f.ding.removals() != 1 {
			t.Errorf("meanwhile %d marks remain after %d calls", f.ding.left(), f.ding.removals())
		}
		if _, err := f.months.OpenCallMonth(f.ctx, calls.MonthAt(time.Now()), 101); err != nil {
			t.Fatal(err)
		}
		if err := f.governor.Refresh(f.ctx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(spentPause + 2*removeEvery)
		if f.ding.left() != 0 || f.rows.open() != 0 {
			t.Errorf("%d marks remain, %d rows", f.ding.left(), f.rows.open())
		}
	})
}

// A mark is not given up while DingTalk refuses the month's calls.
func TestRemovalOutlastsRefusals(t *testing.T) {
	t.Parallel()
	play(t, 0, func(f *fixture) {
		for range 2 * maxRemovals {
			f.ding.onErase = append(f.ding.onErase, &calls.RefusedError{Level: calls.Spent})
		}
		f.asked(f.Reactions, 1)
		f.rows.answer(1)
		<-time.After(24 * time.Hour)
		if f.ding.left() != 0 || f.rows.open() != 0 {
			t.Errorf("after %d removals %d marks remain, %d rows", f.ding.removals(), f.ding.left(), f.rows.open())
		}
	})
}

// No message ever has two marks, and none has one in the end, with any failed calls and killed processes.
func TestNoMarkIsLeft(t *testing.T) {
	t.Parallel()
	outcome := rapid.SampledFrom([]error{nil, nil, lost, &chat.SendError{Err: errors.New("system.err")}})
	rapid.Check(t, func(r *rapid.T) {
		set := rapid.SliceOfN(outcome, 0, 8).Draw(r, "set")
		erased := rapid.SliceOfN(outcome, 0, 4).Draw(r, "erased")
		messages := rapid.SliceOfN(rapid.Int64Range(1, 3), 1, 8).Draw(r, "messages")
		slow := time.Duration(rapid.IntRange(0, 3000).Draw(r, "slow")) * time.Millisecond
		play(t, 0, func(f *fixture) {
			f.ding.t, f.ding.onSet, f.ding.onErase, f.ding.slow = r, set, erased, slow
			for _, id := range messages {
				f.asked(f.replica(), id) // each time another process
				<-time.After(time.Second)
				f.rows.answer(id)
			}
			<-time.After(5 * time.Minute)
			if f.ding.left() != 0 || f.rows.open() != 0 {
				r.Errorf("%d marks remain, %d rows", f.ding.left(), f.rows.open())
			}
		})
	})
}
