package upkeep

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"ebb/bot/outbox"
	"ebb/bot/parts"
	"ebb/bot/view"
	"ebb/compaction"
	"ebb/compaction/summarize"
	"ebb/compaction/tokens"
	"ebb/memory"
	"ebb/memory/extract"
	"ebb/sessions"
)

// Compacted is the result of an attempt, with details for its requester.
type Compacted struct {
	sessions.LogEntry
	Report summarize.Report
	Memory memory.Receipt // facts that its flush found
	// Summarized and Preserved are the numbers of events that left the view and that stay raw; PinnedGrowth is in tokens.
	Summarized, Preserved, PinnedGrowth int
	BlobsDeleted                        int    // stored tool results that no view needs any more
	RequestedModel                      string // configured for summaries
}

// Request is a person's request for a compaction.
type Request struct {
	Focus    string // the summary's focus
	Settings string // the session's settings with those of the request, as JSON; empty: none
	By       string // person's id, or operator's name in the audit
}

// compactor shrinks the contexts of sessions.
type compactor struct {
	shared    *parts.Shared
	views     *view.Builder
	turns     Turns
	jobs      Jobs
	store     Compactions
	log       extract.Log
	summaries summaries
	locks     *locks
	marker    marker
	accuser   accuser
	flusher   *flusher
	charger   charger
	outbox    *outbox.Outbox
	stats     Stats
	notify    bool // automatic compactions are announced
}

// summaries makes the summarizer of a session.
type summaries struct {
	shared *parts.Shared
	base   summarize.Summarizer // without a model's name
}

func (s summaries) of(key sessions.Key) *summarize.Summarizer {
	one, set := s.base, s.shared.Current.For(key)
	one.Name, one.Context, one.Language = set.SummaryModel, set.Compaction.Window.Context, s.shared.Language(key)
	return &one
}

// attempt is one attempt at a compaction.
type attempt struct {
	by *compactor
	Compacted
	lease   sessions.Lease
	set     compaction.Settings
	view    sessions.View    // as requests show it
	whole   []sessions.Event // its tail with whole bodies
	tokens  int
	waiting int // tokens of the waiting question, in addition to tokens
	began   time.Time
	partial bool // later attempts have to remove more
	staged  bool // the draft is stored, and its cost is charged
	// memories is the pinned memory of the new view; nil: unchanged.
	memories *sessions.Pinned
}

func (r *attempt) pinnedGrowth() int {
	if r.memories == nil {
		return 0
	}
	return r.by.views.Sizes.Counted.Count(r.memories.Text) - r.by.views.Sizes.Counted.Count(r.view.Session.Pinned)
}

func (r *attempt) shorten(p compaction.Policy) (shown []sessions.Shown, freed int) {
	switch p.Mode {
	case compaction.OffloadThenCompact:
		st := r.by.views.Sizes.State(r.view, r.tokens+r.waiting)
		st.Tail = r.whole
		if r.Trigger != TriggerManual {
			st.Tokens = max(st.Tokens, r.set.Window.Trigger()) // the trigger also counted the waiting question
		}
		shown, _ = p.Offload(r.set.Window, st, r.by.shared.Counter.Count)
	case compaction.SummaryPlusPrune, compaction.PruneOnly:
		shown = p.Prune(r.whole, r.by.shared.Counter.Count)
	}
	for _, one := range shown {
		freed += r.tokensOf(one.Seq) - one.Tokens
	}
	return shown, freed
}

func (r *attempt) countRaw(through int64) (n int) {
	for _, e := range r.view.Tail {
		if e.Seq > through {
			n++
		}
	}
	return n
}

func (r *attempt) tokensOf(seq int64) int {
	for _, e := range r.view.Tail {
		if e.Seq == seq {
			return e.Tokens
		}
	}
	return 0
}

func replacedTokens(active []sessions.Summary, fresh []sessions.NewSummary) int {
	n := 0
	for _, f := range fresh {
		n -= f.Tokens + tokens.MessageOverhead
		for _, a := range active {
			if f.StartSeq <= a.StartSeq && a.EndSeq <= f.EndSeq {
				n += a.Tokens + tokens.MessageOverhead
			}
		}
	}
	return n
}

// version identifies the instructions of a staged draft, which another version does not use.
func (r *attempt) version() string {
	p := r.set.Policy
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%s\x00%d\x00%s\x00%s", summarize.PromptVersion(), p.Name, p.Mode, p.Profile, p.Segment, r.by.shared.Language(r.view.Session.Key), r.Focus))
	return hex.EncodeToString(sum[:8])
}

// cutAt reports false where no turn ends after the event through.
func cutAt(tail []sessions.Event, through int64) (compaction.Cut, bool) {
	for _, i := range append(compaction.TurnStarts(tail), len(tail)) {
		if i > 0 && tail[i-1].Seq == through {
			return compaction.Cut{Index: i, Through: through, Source: compaction.TokensOf(tail[:i]), Recent: compaction.TokensOf(tail[i:])}, true
		}
	}
	return compaction.Cut{}, false
}

// cutAtFlush limits an automatic cut to events that the cycle's flush has read, so that one flush is enough. A cut that
// would lose more than half of its source stays, and needs another flush.
func cutAtFlush(cut compaction.Cut, tail []sessions.Event, flushed int64) compaction.Cut {
	at := 0
	for _, i := range compaction.TurnStarts(tail[:cut.Index+1]) {
		if i > 0 && tail[i-1].Seq <= flushed {
			at = i
		}
	}
	source := compaction.TokensOf(tail[:at])
	if 2*source < cut.Source || at == 0 {
		return cut
	}
	return compaction.Cut{Index: at, Through: tail[at-1].Seq, Source: source, Recent: cut.Recent + cut.Source - source}
}
