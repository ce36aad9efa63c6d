package chaos

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"ebb/bot/dingtalk/dingtalktest"
	"ebb/cmd/lab/rig"
	"ebb/sessions"
	"ebb/sql/inspect"
)

// evidence is the record of a run, as plain data.
type evidence struct {
	broken []string // promises broken before the end

	// Messages of people, and the record of DingTalk.
	said      map[string]remark // by mark
	scheduled int               // messages of schedules among them
	reminders []reminder
	ended     time.Time // end of the talk
	took      []time.Duration
	replies   []dingtalktest.Reply // in their order
	cards     []dingtalktest.Card
	marks     []string                 // messages with a thinking mark at the end
	strange   []dingtalktest.Violation // violations of the protocol

	// Stored data.
	log      []inspect.Logged
	standing []inspect.Standing
	terms    []sessions.Lease
	letters  []inspect.Letter
	facts    []inspect.Kept
	gaps     []string
	open     inspect.Undone
	accounts []sessions.Restart

	// Logs and fates of gateways.
	turns  []turnLine
	panics []string
	again  map[letterID]time.Time // time of each reply that a gateway sent again by its log, and that may have arrived
	unsure map[letterID]time.Time // time of each end of a reply's card that had no answer
	both   []overlap
	asked  []inquiry
	online map[string]time.Time // first connection to DingTalk by process
	lives  map[string]life      // by process
	away   []rig.Interval       // outages of the database
	erased []erasure
	// By word: the last request with it, and the tables that have it.
	requests map[string]wordSeen
	remains  map[string][]string
	months   []rig.Interval // DingTalk refused all counted calls
	crashes  []crash
	// Words of pictures and files in the last request with a message, by its mark, and the times of faults of downloads.
	content map[string][]string
	spoiled []time.Time
	effects []effect              // executed calls of tools
	results map[string]callResult // the last one that the model read, by call
	rough   []rig.Interval        // DingTalk or its network was so slow or broken that turns may have failed
}

// gatherEvidence runs after the end of all gateways.
func (w *world) gatherEvidence(ctx context.Context) (*evidence, error) {
	e := &evidence{
		replies: w.sim.Replies(""), cards: w.sim.Cards(""), marks: w.sim.EmotionsLeft(),
		// Violations that no correct gateway commits under any fault.
		strange: w.sim.Violations(append(slices.Clone(cardViolations),
			dingtalktest.AckUnknown, dingtalktest.AckTwice, dingtalktest.AckMalformed, dingtalktest.AckWrongConnection,
			dingtalktest.ReplyWrongPlace, dingtalktest.MentionNotInText, dingtalktest.WebhookUnknown, dingtalktest.OpenMalformed,
		)...),
		both: w.mind.copyOverlaps(), asked: w.mind.copyInquiries(), lives: w.lives.copyAll(),
		erased: w.erasures.copyAll(), reminders: w.reminders.copyAll(), ended: w.ended, requests: w.mind.wordsSeen(), content: w.mind.contentShown(), spoiled: w.talk.copySpoiled(), results: w.mind.copyResults(),
	}
	e.said, e.took = w.talk.copyAll()
	e.months = w.months.copyAll()
	w.book.copyInto(e)
	w.mu.Lock()
	e.broken, e.away, e.rough, e.crashes = slices.Clone(w.broken), slices.Clone(w.apart), slices.Clone(w.rough), slices.Clone(w.crashes)
	w.mu.Unlock()
	var err error
	for _, read := range []func() error{
		func() error { e.log, err = w.eye.Log(ctx); return err },
		func() error { e.standing, err = w.eye.Sessions(ctx); return err },
		func() error { e.terms, err = w.eye.Terms(ctx); return err },
		func() error { e.letters, err = w.eye.Replies(ctx); return err },
		func() error { e.facts, err = w.eye.Facts(ctx); return err },
		func() error { e.gaps, err = w.eye.Gaps(ctx); return err },
		func() error { e.open, err = w.eye.Undone(ctx); return err },
		func() error { e.accounts, err = w.eye.Restarts(ctx); return err },
		func() error { e.remains, err = w.eye.Words(ctx, markedWords.String()); return err },
		func() error { e.effects, err = w.readEffects(); return err },
	} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	e.dropErased()
	e.noteScheduled()
	e.log = slices.DeleteFunc(e.log, isClick)
	return e, nil
}

// processOf is the name of a replica's process, which precedes the random part.
func processOf(r sessions.ReplicaID) string {
	name := string(r)
	return name[:max(0, strings.LastIndexByte(name, '-'))]
}

type findings struct {
	broken []string // broken promises

	said, acked, answered, commands, apologies, dead, perhaps, doubled            int
	erasures, wiped, cards, closed, meanwhile, reminders, reminded, shown, unread int
	turns, compactions, flushes, facts, accounts, grants, resumed, redelivered    int
	effects, results, failedCalls, unknownCalls                                   int
	p50, p99                                                                      time.Duration
	recoveries                                                                    []recovery
}

func shorten(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	rs := []rune(line)
	return string(rs[:min(len(rs), 80)])
}

var endOfTime = time.Unix(1<<40, 0)

func (f *findings) addBroken(format string, args ...any) {
	if len(f.broken) < maxBroken {
		f.broken = append(f.broken, fmt.Sprintf(format, args...))
	}
}

func countOverlaps(spans []rig.Interval, in rig.Interval) (n int) {
	for _, s := range spans {
		if s.From.Before(in.To) && in.From.Before(s.To) {
			n++
		}
	}
	return n
}

func describeReply(r dingtalktest.Reply) string {
	return fmt.Sprintf("%s by %s %q", r.Time.Format("15:04:05.000"), r.Via, shorten(r.Text))
}

func isWiped(text string) bool { return strings.Contains(text, sessions.ErasedText) }
