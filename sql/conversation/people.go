package conversation

import (
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"ebb/sessions"
)

// A row of a person says when they last spoke to within seenEvery. Retention leaves younger rows alone.
const seenEvery = time.Hour

const (
	maxRemembered = 2000 // sessions
	maxSpeakers   = 200  // people of one
)

// speakers remembers the people whom this process noted under its leases, so that a plain turn sends no statement for them. An erasure, which removes
// rows of people, ends the term of the lease first.
type speakers struct {
	mu sync.Mutex
	of *lru.Cache[sessions.Key, *speakersOf]
}

type speakersOf struct {
	term int64
	turn int64 // its number at least: a session that was deleted and created again may have the same term
	last map[sessions.UserID]noted
	open map[int64]speaker // by the messages of the open turn
}

type noted struct {
	nick string
	at   time.Time
}

type speaker struct {
	id     sessions.UserID
	nick   string
	quotes bool // The message also names whom it quotes.
}

func newSpeakers() *speakers {
	of, err := lru.New[sessions.Key, *speakersOf](maxRemembered)
	if err != nil {
		panic(err) // the size is a constant
	}
	return &speakers{of: of}
}

// open remembers the messages of a turn, after a number of turns of the session.
func (s *speakers) open(l sessions.Lease, turn int64, pending []sessions.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.of.Get(l.Key)
	if !ok || one.term != l.Term || turn < one.turn || len(one.last) > maxSpeakers {
		one = &speakersOf{term: l.Term, last: map[sessions.UserID]noted{}}
		s.of.Add(l.Key, one)
	}
	one.turn = turn
	one.open = map[int64]speaker{}
	for _, e := range pending {
		one.open[e.ID] = speaker{e.SenderID, e.SenderNick, e.Message == nil || e.Message.Quote != nil}
	}
}

// areNoted reports whether all people of a turn's messages have a row that needs no change.
func (s *speakers) areNoted(l sessions.Lease, taken []int64, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.of.Peek(l.Key)
	if !ok || one.term != l.Term {
		return len(taken) == 0
	}
	for _, id := range taken {
		who, ok := one.open[id]
		if !ok || who.quotes {
			return false
		}
		if last, ok := one.last[who.id]; who.id != "" && (!ok || last.nick != who.nick || now.Sub(last.at) >= seenEvery) {
			return false
		}
	}
	return true
}

// note remembers that the rows of a turn's people are committed.
func (s *speakers) note(l sessions.Lease, taken []int64, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.of.Peek(l.Key)
	if !ok || one.term != l.Term {
		return
	}
	one.turn++
	for _, id := range taken {
		if who, ok := one.open[id]; ok {
			one.last[who.id] = noted{who.nick, now}
		}
	}
}
