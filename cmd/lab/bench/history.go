package bench

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strings"
	"time"

	"ebb/cmd/lab/rig"
	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/yardstick"
)

const (
	slowCommit  = 50 * time.Millisecond // added to a commit, to count how many a turn waits for
	commitTurns = 24
)

// measureCommits slows each commit down and compares the delay of a turn with that of one commit.
func (b *suite) measureCommits(ctx context.Context) (figures []rig.Figure, err error) {
	defer func() { err = rig.JoinStopError(err, b.yard.SlowCommits(context.WithoutCancel(ctx), 0)) }()
	var turn, one [2]time.Duration
	for i, slow := range []time.Duration{0, slowCommit} {
		if err := b.yard.SlowCommits(ctx, int(slow.Microseconds())); err != nil {
			return nil, err
		}
		if turn[i], err = b.plainTurns(ctx, commitTurns); err != nil {
			return nil, err
		}
		if one[i], err = b.plainCommits(ctx, commitTurns); err != nil {
			return nil, err
		}
	}
	b.perTurn = rig.Ratio(float64(turn[1]-turn[0]), float64(one[1]-one[0]))
	return []rig.Figure{
		// The number is a whole one; the remainder is other work on the machine.
		rig.Figure{Name: "durable commits a turn", Measured: fmt.Sprintf("%.1f", b.perTurn), Target: "<= 3"}.AtMost(math.Round(b.perTurn), 3),
	}, nil
}

func (b *suite) plainCommits(ctx context.Context, n int) (time.Duration, error) {
	yard, err := yardstick.Open(ctx, b.private.URL(), 1)
	if err != nil {
		return 0, err
	}
	defer yard.Close()
	var took []time.Duration
	for range n {
		began := time.Now()
		if err := yard.Commit(ctx, 0); err != nil {
			return 0, err
		}
		took = append(took, time.Since(began))
	}
	return rig.Median(took), nil
}

func (b *suite) plainTurns(ctx context.Context, n int) (took time.Duration, err error) {
	in, err := b.openInside(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = rig.JoinStopError(err, in.stop()) }()
	b.fixtures++
	const conversations = 8
	var all []time.Duration
	for i := range n + conversations {
		d, err := in.runTurn(ctx, sessions.ConversationID(fmt.Sprintf("cid-plain-%d-%d", b.fixtures, i%conversations)))
		if err != nil {
			return 0, err
		}
		if i >= conversations { // a session's first turn makes it
			all = append(all, d)
		}
	}
	return rig.Median(all), nil
}

// The compared histories leave a view of a summary and historyTail events.
const (
	historyTail  = 8
	historyPairs = 4
	historyTurns = 40 // in each session
)

var historySizes = [2]int{10, 10_000}

func (b *suite) measureHistory(ctx context.Context) (figures []rig.Figure, err error) {
	keys, err := b.seedHistories(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.yard.Tidy(ctx); err != nil {
		return nil, err
	}
	in, err := b.openInside(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = rig.JoinStopError(err, in.stop()) }()
	var took [2][]time.Duration
	var bytes [2][]float64
	for round := range historyTurns {
		for pair := range historyPairs {
			for i := range historySizes {
				before := allocatedBytes()
				d, err := in.runTurn(ctx, keys[pair][i])
				if err != nil {
					return nil, err
				}
				if round > 0 { // the first turn takes the lease
					took[i], bytes[i] = append(took[i], d), append(bytes[i], allocatedBytes()-before)
				}
			}
		}
	}
	time, space := rig.Ratio(float64(rig.Median(took[1])), float64(rig.Median(took[0]))), rig.Ratio(rig.Median(bytes[1]), rig.Median(bytes[0]))
	what := fmt.Sprintf("a turn after %d events against %d, ", historySizes[1], historySizes[0])
	return []rig.Figure{
		rig.Figure{
			Name: what + "time", Measured: rig.FormatMillis(rig.Median(took[1])) + " against " + rig.FormatMillis(rig.Median(took[0])),
			Ratio: fmt.Sprintf("%.2f x", time), Target: "<= 1.2 x",
		}.AtMost(time, 1.2),
		rig.Figure{
			Name: what + "allocations", Measured: fmt.Sprintf("%.0f KB against %.0f KB", rig.Median(bytes[1])/1024, rig.Median(bytes[0])/1024),
			Ratio: fmt.Sprintf("%.2f x", space), Target: "<= 1.2 x",
		}.AtMost(space, 1.2),
	}, nil
}

func allocatedBytes() float64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.TotalAlloc)
}

// seedHistories writes what turns and compactions leave.
func (b *suite) seedHistories(ctx context.Context) (keys [historyPairs][len(historySizes)]sessions.ConversationID, err error) {
	for pair := range keys {
		for i, size := range historySizes {
			keys[pair][i] = sessions.ConversationID(fmt.Sprintf("cid-history-%d-%d", size, pair))
			text := strings.Repeat("联调的进展：收单、退款、查询三条链路都通了。", 3)
			s := sessionSeed{conversation: keys[pair][i], events: size, text: text, tokens: 60, total: 2000}
			lease, err := b.plantSession(ctx, s)
			if err != nil {
				return keys, err
			}
			through := int64(size - historyTail)
			if _, err := b.store.Flushes.Flush(ctx, lease, memory.Flush{Through: through, Last: true}); err != nil {
				return keys, err
			}
			summary := sessions.NewSummary{StartSeq: 1, EndSeq: through, Text: rig.SampleSummary, Tokens: 180}
			if _, err := b.store.Compactions.Compact(ctx, lease, sessions.Compaction{Through: through, Summaries: []sessions.NewSummary{summary}}); err != nil {
				return keys, err
			}
		}
	}
	_, err = b.store.Leases.Resign(ctx, planter)
	return keys, err
}

const planter sessions.ReplicaID = "planter"

type sessionSeed struct {
	conversation sessions.ConversationID
	events       int
	text         string
	tokens       int
	total        int // tokens of the context
}

// The planter keeps the lease until it resigns.
func (b *suite) plantSession(ctx context.Context, s sessionSeed) (sessions.Lease, error) {
	if _, err := b.store.Leases.Beat(ctx, planter); err != nil {
		return sessions.Lease{}, err
	}
	first := sessions.Message{
		RobotCode: rig.RobotCode, ConversationID: s.conversation, ConversationType: sessions.Group, ID: "seed",
		SenderID: "u1", SenderNick: "张伟", Kind: "text", Text: s.text,
	}
	a, err := b.store.Inbox.Accept(ctx, planter, sessions.NewKey(rig.RobotCode, s.conversation, ""), first)
	if err != nil {
		return sessions.Lease{}, err
	}
	t := sessions.TurnResult{Taken: []int64{a.EventID}, TakenTokens: []int{s.tokens}, TotalTokens: s.total}
	for range s.events - 1 {
		t.Events = append(t.Events, sessions.Event{Role: sessions.RoleAssistant, Content: s.text, Tokens: s.tokens})
	}
	_, err = b.store.Turns.Commit(ctx, a.Lease, t)
	return a.Lease, err
}
