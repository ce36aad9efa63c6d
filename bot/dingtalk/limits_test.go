package dingtalk

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ebb/sessions"
)

// The law: in no minute more messages than configured, and a caller that waits for the returned time is served.
func TestLimitsHoldInEveryMinute(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 25).Draw(r, "per minute")
		l := newLimits(n)
		now := time.Unix(1_800_000_000, 0)
		l.now = func() time.Time { return now }
		var sent []time.Time
		for range 200 {
			now = now.Add(time.Duration(rapid.IntRange(0, 5000).Draw(r, "step")) * time.Millisecond)
			if wait := l.takePlace("c"); wait > 0 {
				now = now.Add(wait)
				if l.takePlace("c") > 0 {
					r.Fatalf("refused after waiting %s as told", wait)
				}
			}
			sent = append(sent, now)
			if len(sent) > n && sent[len(sent)-1].Sub(sent[len(sent)-1-n]) < time.Minute {
				r.Fatalf("%d messages within %s", n+1, sent[len(sent)-1].Sub(sent[len(sent)-1-n]))
			}
		}
	})
}

func TestLimitsBackOffPerConversation(t *testing.T) {
	t.Parallel()
	l := newLimits(0)
	now := time.Unix(1_800_000_000, 0)
	l.now = func() time.Time { return now }
	var last time.Duration
	for range 12 {
		d := l.NoteRefusal("c")
		if d < last || d > longestSilence {
			t.Errorf("silence of %s after one of %s", d, last)
		}
		if wait := l.takePlace("c"); wait != d {
			t.Errorf("take says %s, refused said %s", wait, d)
		}
		last = d
	}
	if last != longestSilence {
		t.Errorf("the longest silence is %s", last)
	}
	if l.takePlace("other") != 0 {
		t.Error("another conversation has to wait as well")
	}
	now = now.Add(last)
	if l.takePlace("c") != 0 {
		t.Error("the silence does not end")
	}
	l.noteArrival("c")
	if d := l.NoteRefusal("c"); d != firstSilence {
		t.Errorf("after a success the first silence is %s", d)
	}
}

func TestLimitsForgetIdleConversations(t *testing.T) {
	t.Parallel()
	l := newLimits(20)
	now := time.Unix(1_800_000_000, 0)
	l.now = func() time.Time { return now }
	for i := range 5 * manyPaces {
		now = now.Add(time.Second)
		l.takePlace(sessions.ConversationID(fmt.Sprint(i)))
	}
	if n := len(l.paces); n > manyPaces {
		t.Errorf("%d conversations are remembered", n)
	}
}
