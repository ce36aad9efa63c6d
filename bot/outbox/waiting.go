package outbox

import (
	"context"
	"slices"
	"time"

	"ebb/sessions"
)

func (s *queues) holds(key sessions.Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.of {
		if q.holds(key) {
			return true
		}
	}
	return false
}

// awaitSent waits for no reply that others pass: a reminder without calls may wait for a day.
func (s *queues) awaitSent(ctx context.Context, key sessions.Key, to sessions.Target, atMost time.Duration) bool {
	ctx, stop := context.WithTimeout(ctx, atMost)
	defer stop()
	robot, id := key.Conversation()
	s.mu.Lock()
	s.lend(channel{robot: robot, id: id}, webhookOf(to))
	s.mu.Unlock()
	for {
		s.mu.Lock()
		held, left := s.blocks(key), s.left
		s.mu.Unlock()
		if !held {
			return true
		}
		select {
		case <-left:
		case <-ctx.Done():
			return false
		}
	}
}

// hasUnmarked reports whether the outcome of a waiting reply's last attempt is not stored.
func (s *queues) hasUnmarked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.of {
		if slices.ContainsFunc(q.replies, func(p *pending) bool { return p.unmarked }) {
			return true
		}
	}
	return false
}

// length is the number of unsent replies.
func (s *queues) length() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, q := range s.of {
		n += len(q.replies)
	}
	return n
}

// isQueued answers by the session's conversation.
func (s *queues) isQueued(key sessions.Key, card bool) bool {
	robot, id := key.Conversation()
	s.mu.Lock()
	defer s.mu.Unlock()
	c := channel{robot, id, card}
	return s.of[s.behind(c, key)] != nil || card && s.messages(c).blocks(key)
}

// isBackpressured holds from maxQueued replies of the session's conversation on. Room there wakes the session.
func (s *queues) isBackpressured(key sessions.Key) bool {
	robot, id := key.Conversation()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, card := range []bool{false, true} {
		q := s.of[channel{robot, id, card}]
		if q == nil || q.length() < maxQueued {
			continue
		}
		if !slices.Contains(q.turnedAway, key) {
			q.turnedAway = append(q.turnedAway, key)
		}
		return true
	}
	return false
}
