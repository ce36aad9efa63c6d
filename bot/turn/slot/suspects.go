package slot

import (
	"context"
	"slices"
	"sync"
	"time"

	"ebb/sessions/llm"
)

// suspectAlone bounds how long a suspect that must run alone holds up turns without a suspect. It has that time while it
// waits for them, and again while it runs. A hanging model must not stop all conversations. After a death beside others
// only the time of a turn bounds it. Otherwise a slow killer would never be found among them.
const suspectAlone = 10 * time.Second

// Suspects narrows down which message ends its process. A suspect of a width runs beside fewer other suspects than that.
// A suspect of width 1 runs alone, so that a death of its process is its own. The widest come first: they are the least
// suspicious. See [sessions.Turns.Begin].
type Suspects struct {
	Closed <-chan struct{} // ends all waits

	mu     sync.Mutex
	plain  int        // turns without a suspect in progress
	others []*suspect // that wait
	taken  []*suspect // in progress
	line   []*suspect // by width, then by arrival
}

type suspect struct {
	width  int    // 0: no suspect
	joined func() // see Enter
	given  chan struct{}
	late   bool        // it held others up long enough
	timer  *time.Timer // sets late
}

// TryEnter lets a turn without a suspect begin, unless a suspect must run alone. leave is called once.
func (s *Suspects) TryEnter() (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.excludes() {
		return nil, false
	}
	me := &suspect{given: make(chan struct{})}
	s.give(me)
	return s.leave(me), true
}

// Excludes reports whether a suspect that must run alone holds up turns without one.
func (s *Suspects) Excludes() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.excludes()
}

// Enter waits for the place of a suspect of a width, or of a turn without one for 0. leave is called once. joined is
// called before others run beside a suspect of width 1; nil: none do. The error is ctx's cause, or ErrStop once Closed
// is closed.
func (s *Suspects) Enter(ctx context.Context, width int, joined func()) (leave func(), err error) {
	me := &suspect{width: width, joined: joined, given: make(chan struct{})}
	s.mu.Lock()
	s.join(me)
	s.grant()
	s.mu.Unlock()
	select {
	case <-me.given:
		return s.leave(me), nil
	case <-s.Closed:
		err = llm.ErrStop
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	s.leave(me)()
	return nil, err
}

// The methods below need the lock.

func (s *Suspects) join(me *suspect) {
	if me.width == 0 {
		s.others = append(s.others, me)
		return
	}
	at := slices.IndexFunc(s.line, func(o *suspect) bool { return o.width < me.width })
	if at < 0 {
		at = len(s.line)
	}
	if at == 0 && len(s.line) > 0 {
		s.line[0].rest() // it is not the next one any more
	}
	s.line = slices.Insert(s.line, at, me)
}

func (s *Suspects) give(me *suspect) {
	close(me.given)
	if me.width == 0 {
		s.plain++
		return
	}
	s.taken = append(s.taken, me)
	if s.plain > 0 {
		s.hold(me, 0, me.joined)
		return
	}
	s.hold(me, suspectAlone, me.joined)
}

// hold lets a suspect that runs alone, or is the next to do so, hold up others for a while. end precedes its end.
func (s *Suspects) hold(me *suspect, limit time.Duration, end func()) {
	me.rest()
	if me.width != 1 || me.joined == nil {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(limit, func() {
		end()
		s.mu.Lock()
		defer s.mu.Unlock()
		if me.timer == timer {
			me.late = true
			s.grant()
		}
	})
	me.timer = timer
}

func (me *suspect) rest() {
	if me.timer != nil {
		me.timer.Stop()
	}
	me.timer, me.late = nil, false
}

// excludes reports whether turns without a suspect wait.
func (s *Suspects) excludes() bool {
	alone := func(o *suspect) bool { return o.width == 1 && !o.late }
	return slices.ContainsFunc(s.taken, alone) || len(s.taken) == 0 && len(s.line) > 0 && alone(s.line[0])
}

func (s *Suspects) fits(next *suspect) bool {
	for _, o := range s.taken {
		if len(s.taken) >= min(next.width, o.width) {
			return false
		}
	}
	return next.width > 1 || s.plain == 0 || next.late
}

func (s *Suspects) grant() {
	for len(s.line) > 0 && s.fits(s.line[0]) {
		next := s.line[0]
		s.line = s.line[1:]
		s.give(next)
	}
	if len(s.line) > 0 && len(s.taken) == 0 && s.line[0].timer == nil {
		s.hold(s.line[0], suspectAlone, func() {})
	}
	if !s.excludes() {
		s.letOthersIn()
	}
}

func (s *Suspects) letOthersIn() {
	for _, o := range s.others {
		s.give(o)
	}
	s.others = nil
}

// leave gives the place back, or leaves the line.
func (s *Suspects) leave(me *suspect) func() {
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		me.rest()
		is := func(o *suspect) bool { return o == me }
		switch {
		case slices.ContainsFunc(s.taken, is):
			s.taken = slices.DeleteFunc(s.taken, is)
			if me.width == 1 { // the next one alone would hold them up again
				s.letOthersIn()
			}
		case me.width > 0:
			s.line = slices.DeleteFunc(s.line, is)
		case slices.ContainsFunc(s.others, is):
			s.others = slices.DeleteFunc(s.others, is)
		default:
			s.plain--
		}
		s.grant()
	})
}
