package upkeep

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/view"
	"ebb/compaction"
	"ebb/compaction/summarize"
	"ebb/compaction/tokens"
	"ebb/memory"
	"ebb/sessions"
	"ebb/sessions/redact"
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

// Compact shrinks a context: every automatic, manual or overflow compaction calls it, and it includes the flush.
// Without a commit both Error and the error have the reason, and only the row of the compaction log changes.
//
// asked is nil for an automatic compaction. needed is called under the session's lock; it returns the trigger, or ""
// where an earlier run made the room. waiting is the size of the question that waits, in the provider's tokens.
func (u *Worker) Compact(ctx context.Context, l sessions.Lease, asked *Request, waiting int, needed func(sessions.View) sessions.Trigger) (Compacted, error) {
	if asked != nil {
		var stop context.CancelFunc
		ctx, stop = attemptContext(ctx, u.shared.CompactDeadline)
		defer stop()
	}
	unlock, err := u.locks.lock(ctx, l.Key)
	if err != nil {
		return Compacted{}, fmt.Errorf("wait for upkeep: %w", err)
	}
	defer unlock()
	began := time.Now()
	v, err := u.store.Turns.Begin(ctx, l, 0)
	if err != nil {
		return Compacted{}, fmt.Errorf("read session: %w", err)
	}
	if asked == nil {
		asked = &Request{Settings: v.Session.Settings}
	}
	v.Session.Settings = asked.Settings
	r := run{worker: u, lease: l, set: u.views.Settings(v.Session), began: began, whole: u.views.WithoutCommands(v.Tail), waiting: waiting}
	u.views.Show(&v)
	r.view, r.tokens = v, u.views.ContextSize(v)
	r.RequestedModel = u.shared.Current.For(l.Key).SummaryModel
	r.LogEntry = sessions.LogEntry{
		Key: l.Key, Trigger: needed(v), Policy: r.set.Policy.Name, Mode: string(r.set.Policy.Mode), Focus: tokens.HeadTail(redact.Secrets(asked.Focus), maxFocus), RequestedBy: asked.By, Model: r.RequestedModel,
		TokensBefore: r.tokens, TokensAfter: r.tokens, StartSeq: v.Session.CompactedSeq + 1, EndSeq: v.Session.CompactedSeq,
	}
	if r.Trigger == "" {
		return r.Compacted, nil
	}
	end, err := u.markUpkeep(ctx, l)
	if err != nil {
		return r.Compacted, err
	}
	defer end()
	zerolog.Ctx(ctx).Info().Str("trigger", string(r.Trigger)).Str("policy", r.Policy).Int("tokens", r.tokens).Msg("Auto-compacting context")
	err = r.execute(ctx)
	r.Duration = time.Since(began)
	if err != nil {
		r.logFailure(ctx, err)
	}
	u.stats.Compacted(r.LogEntry)
	return r.Compacted, err
}

// Inline implements turn.Upkeep by [Worker.Compact].
func (u *Worker) Inline(ctx context.Context, l sessions.Lease, waiting int, needed func(sessions.View) sessions.Trigger) error {
	_, err := u.Compact(ctx, l, nil, waiting, needed)
	return err
}

// run is one attempt at a compaction.
type run struct {
	worker *Worker
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

func (r *run) pinnedGrowth() int {
	if r.memories == nil {
		return 0
	}
	return r.worker.views.Counted.Count(r.memories.Text) - r.worker.views.Counted.Count(r.view.Session.Pinned)
}

func (r *run) execute(ctx context.Context) error {
	p, s := r.set.Policy, r.view.Session
	if s.PinnedDue { // forgotten facts are not pinned again
		var err error
		if r.memories, err = r.worker.views.Pinned(ctx, r.view); err != nil {
			return err
		}
	}
	shown, freed := r.shorten(p)
	after := r.tokens - view.Calibrated(freed, s.CalibrationFactor)
	manual := r.Trigger == TriggerManual
	switch {
	case p.Mode == compaction.OffloadThenCompact && !manual && len(shown) > 0 && !p.StillDue(r.set.Window, after+r.waiting, r.tokens-after),
		p.Mode == compaction.PruneOnly && p.Progress(r.tokens, after, 0, 0) == nil && after < r.set.Window.Trigger():
		return r.commit(ctx, sessions.Compaction{Through: s.CompactedSeq, Shown: shown}, after)
	}
	window := r.set.Window.Counted(s.CalibrationFactor)
	cut, draft, source, err := r.summarize(ctx, window)
	if NothingToCompact(err) && !manual && p.Progress(r.tokens, after, 0, 0) == nil {
		return r.commit(ctx, sessions.Compaction{Through: s.CompactedSeq, Shown: shown}, after)
	}
	if err != nil {
		return err
	}
	c := sessions.Compaction{Through: cut.Through, Summaries: draft.Summaries, Source: source}
	freed = cut.Source + replacedTokens(r.view.Summaries, draft.Summaries)
	if p.Mode != compaction.SummaryOnly {
		for _, one := range shown {
			if one.Seq > cut.Through {
				c.Shown = append(c.Shown, one)
				freed += r.tokensOf(one.Seq) - one.Tokens
			}
		}
	}
	return r.commit(ctx, c, max(0, r.tokens-view.Calibrated(freed, s.CalibrationFactor)))
}

func (r *run) shorten(p compaction.Policy) (shown []sessions.Shown, freed int) {
	switch p.Mode {
	case compaction.OffloadThenCompact:
		st := r.worker.views.State(r.view, r.tokens+r.waiting)
		st.Tail = r.whole
		if r.Trigger != TriggerManual {
			st.Tokens = max(st.Tokens, r.set.Window.Trigger()) // the trigger also counted the waiting question
		}
		shown, _ = p.Offload(r.set.Window, st, r.worker.shared.Counter.Count)
	case compaction.SummaryPlusPrune, compaction.PruneOnly:
		shown = p.Prune(r.whole, r.worker.shared.Counter.Count)
	}
	for _, one := range shown {
		freed += r.tokensOf(one.Seq) - one.Tokens
	}
	return shown, freed
}

func (r *run) countRaw(through int64) (n int) {
	for _, e := range r.view.Tail {
		if e.Seq > through {
			n++
		}
	}
	return n
}

func (r *run) tokensOf(seq int64) int {
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

// summarize uses a draft again that was staged before a crash, so that no range is summarized twice. The returned draft
// has passed the policy's gate and is staged.
func (r *run) summarize(ctx context.Context, w compaction.Window) (compaction.Cut, summarize.Draft, string, error) {
	s, p := r.view.Session, r.set.Policy
	cut, err := r.plan(ctx, w)
	if err != nil {
		return cut, summarize.Draft{}, "", err
	}
	r.EndSeq = cut.Through
	r.FlushOutcome = r.flushBeforeCut(ctx, cut.Through)
	if r.memories, err = r.worker.views.Pinned(ctx, r.view); err != nil {
		return cut, summarize.Draft{}, "", err
	}
	job := sessions.Job{Gen: s.Gen, From: s.CompactedSeq, Through: cut.Through, Version: r.version()}
	src, err := r.worker.store.Jobs.OpenJob(ctx, r.lease, job)
	if err != nil {
		return cut, summarize.Draft{}, "", err
	}
	var draft summarize.Draft
	if src.Staged != nil && json.Unmarshal(src.Staged, &draft) == nil {
		r.recordDraft(draft)
		r.staged = true
		return cut, draft, src.Hash, nil
	}
	state, events := r.worker.views.State(r.view, r.tokens), r.worker.accuser.readable(r.Key, src.Events)
	cut.Whole = compaction.TokensOf(events)
	task := summarize.Task{
		Policy: p, Session: s, Active: r.view.Summaries, Events: events, From: s.CompactedSeq, Through: cut.Through,
		Target: p.SummaryTarget(w, state, cut), Longest: p.LongestSummary(w, state, cut), Focus: r.Focus, Source: cut.Source,
		Raw: func(ctx context.Context, from, through int64) ([]sessions.Event, error) {
			events, err := r.worker.memory.Search.Range(ctx, r.Key, from, through, maxRaw)
			if err == nil && len(events) == maxRaw {
				err = fmt.Errorf("more than %d events in %d to %d", maxRaw, from, through)
			}
			return r.worker.accuser.readable(r.Key, events), err
		},
	}
	long, stop := r.extendDeadline(ctx, cut)
	draft, err = r.writeDraft(long, task)
	stop()
	if err != nil {
		err = fmt.Errorf("%w: %w", errNoSummary, err)
		part, ok := r.summarizedPart(draft)
		if !ok {
			return cut, draft, "", err
		}
		zerolog.Ctx(ctx).Warn().Err(err).Int64("through", part.Through).Msg("Summary ended early: its first part is kept")
		cut, r.EndSeq, job.Through, r.partial = part, part.Through, part.Through, true
	}
	one, stop := r.paidContext(ctx)
	defer stop()
	if job.Through < task.Through {
		if src, err = r.worker.store.Jobs.OpenJob(one, r.lease, job); err != nil {
			return cut, draft, "", err
		}
	}
	if err := r.gate(p, cut, draft); err != nil {
		return cut, draft, "", err
	}
	text, err := json.Marshal(draft)
	if err != nil {
		return cut, draft, "", fmt.Errorf("encode draft: %w", err)
	}
	if err := r.worker.store.Jobs.StageJob(one, r.lease, job, text, sessions.Spending{Kind: sessions.SpentSummary, Usage: draft.Usage, Cost: draft.Cost, Model: draft.Model}); err != nil {
		return cut, draft, "", err
	}
	r.staged = true
	return cut, draft, src.Hash, nil
}

// summarizedPart is the cut after the chunks before a failed one; ok is false where they end within a turn.
func (r *run) summarizedPart(d summarize.Draft) (part compaction.Cut, ok bool) {
	if len(d.Summaries) == 0 {
		return part, false
	}
	return cutAt(r.view.Tail, d.Summaries[0].EndSeq)
}

// writeDraft records the draft of an error too.
func (r *run) writeDraft(ctx context.Context, t summarize.Task) (d summarize.Draft, err error) {
	engine := &summarize.Engine{Summarizer: r.worker.summaries(r.Key)}
	if t.Policy.Mode == compaction.PruneOnly {
		d = engine.WriteNote(t)
	} else {
		d, err = engine.Summarize(ctx, t)
	}
	if err != nil && r.worker.accuser.accuse(ctx, r.lease, r.view.Session, err, t.Active, t.Events) { // the text is written again, without the events at fault
		lost := d
		t.Events = sessions.Readable(t.Events, r.worker.accuser.reads(r.Key))
		d, err = engine.Summarize(ctx, t)
		d.Usage, d.Cost, d.Report.Calls = d.Usage.Add(lost.Usage), d.Cost+lost.Cost, d.Report.Calls+lost.Report.Calls
	}
	if d.RollUpFault != nil { // the next one leaves the events at fault out
		r.worker.accuser.accuse(ctx, r.lease, r.view.Session, d.RollUpFault, slices.Clone(t.Active), d.RollUpEvents)
	}
	r.recordDraft(d)
	return d, err
}

// recordDraft counts the usage for the attempt that commits the draft, also when another process paid and crashed.
func (r *run) recordDraft(d summarize.Draft) {
	r.Report, r.Usage, r.Cost = d.Report, d.Usage, d.Cost
	if d.Model != "" {
		r.Model = d.Model
	}
}

// maxFocus is in bytes.
const maxFocus = 1500

const maxRaw = 2000

// plan is the policy's cut, or that of a staged job that was not committed.
func (r *run) plan(ctx context.Context, w compaction.Window) (cut compaction.Cut, err error) {
	s, p := r.view.Session, r.set.Policy
	job, err := r.worker.store.Jobs.Job(ctx, r.Key)
	if err != nil && !errors.Is(err, sessions.ErrNotFound) {
		return cut, err
	}
	if err == nil && job.Staged && job.Gen == s.Gen && job.From == s.CompactedSeq && job.Version == r.version() {
		if cut, ok := cutAt(r.view.Tail, job.Through); ok {
			return cut, nil
		}
	}
	state := r.worker.views.State(r.view, r.tokens)
	if cut, r.partial, err = p.Part(w, state); err == nil && r.Trigger == TriggerManual {
		err = p.Worth(w, state, cut)
	}
	if err != nil {
		return cut, err
	}
	if r.Trigger == compaction.TriggerThreshold && s.FlushEpoch == s.CompactionCount {
		cut = cutAtFlush(cut, r.view.Tail, s.FlushedSeq)
	}
	return cut, nil
}

// version identifies the instructions of a staged draft, which another version does not use.
func (r *run) version() string {
	p := r.set.Policy
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%s\x00%d\x00%s\x00%s", summarize.PromptVersion(), p.Name, p.Mode, p.Profile, p.Segment, r.worker.shared.Language(r.view.Session.Key), r.Focus))
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

// gate counts replaced summaries in the source, since merging them is no growth. Newly pinned memory does not count: it
// is a gain of its own.
func (r *run) gate(p compaction.Policy, cut compaction.Cut, d summarize.Draft) error {
	source, summary := cut.Source, 0
	for _, one := range d.Summaries {
		if one.EndSeq == cut.Through {
			summary = one.Tokens
			source += replacedTokens(r.view.Summaries, []sessions.NewSummary{one}) + summary + tokens.MessageOverhead
		}
	}
	freed := cut.Source + replacedTokens(r.view.Summaries, d.Summaries)
	r.TokensAfter = max(0, r.tokens-view.Calibrated(freed, r.view.Session.CalibrationFactor))
	err := p.Progress(r.tokens, r.TokensAfter, source, summary)
	if err == nil && r.Trigger == TriggerManual && r.TokensAfter >= r.tokens {
		err = fmt.Errorf("frees nothing of %d tokens", r.tokens) // a manual compaction must free something
	}
	if err != nil {
		r.Outcome = sessions.CompactionRejected
		return fmt.Errorf("%w: %w", errNoGain, err)
	}
	return nil
}

// AuditRecord is the audit of a committed compaction, as JSON in its log entry.
type AuditRecord struct {
	summarize.Report
	Memories  []int64 `json:"memories,omitempty"` // saved by its flush
	Preserved int     `json:"preserved_count"`    // events that stay raw
	Pinned    int     `json:"pinned_growth,omitempty"`
}

func (r *run) commit(ctx context.Context, c sessions.Compaction, after int) error {
	s, p, w := r.view.Session, r.set.Policy, r.set.Window
	r.Preserved, r.PinnedGrowth = r.countRaw(c.Through), max(0, view.Calibrated(r.pinnedGrowth(), s.CalibrationFactor))
	r.Summarized = len(r.view.Tail) - r.Preserved
	text, err := json.Marshal(AuditRecord{r.Report, r.Memory.Saved, r.Preserved, r.PinnedGrowth})
	if err != nil {
		return fmt.Errorf("encode audit: %w", err)
	}
	r.Audit, r.Outcome, r.EndSeq = string(text), sessions.CompactionCommitted, c.Through
	r.TokensAfter = max(0, after+view.Calibrated(r.pinnedGrowth(), s.CalibrationFactor))
	r.Duration = time.Since(r.began) // the row is written with the summary
	c.Gen, c.From, c.Pinned, c.Log = s.Gen, s.CompactedSeq, r.memories, r.LogEntry
	c.Freed, c.RearmTokens = r.TokensBefore-r.TokensAfter, s.RearmTokens // shortened bodies alone start no cooldown
	switch {
	case r.partial:
		c.RearmTokens = 0 // the next part is due at once
	case len(c.Summaries) > 0:
		c.RearmTokens = p.RearmAfter(w, r.TokensAfter, true)
	}
	c.Notice = r.newNotice(c)
	ctx, stop := r.paidContext(ctx)
	defer stop()
	done, err := r.worker.store.Compactions.Compact(ctx, r.lease, c)
	if err != nil {
		r.Outcome = sessions.CompactionFailed
		r.worker.outbox.Invalidate(r.Key) // a commit with a lost answer may have stored a notice
		return err
	}
	r.BlobsDeleted = done.BlobsDeleted
	if len(done.Replies) > 0 {
		r.worker.outbox.Send(ctx, r.lease, done.Replies, func() {})
	}
	zerolog.Ctx(ctx).Info().Str("trigger", string(r.Trigger)).Str("policy", r.Policy).Int("tokens_before", r.TokensBefore).
		Int("tokens_after", r.TokensAfter).Int64("through", c.Through).Str("flush", string(r.FlushOutcome)).Msg("Compaction completed")
	return nil
}

// logFailure sets when the next attempt may run. Each failure delays it; after an attempt without gain the context must
// also have grown. Parts of a backlog shrink with each failure: see [compaction.Policy.Part]. Without the lease only
// the tokens are counted.
func (r *run) logFailure(ctx context.Context, cause error) {
	s, e := r.view.Session, &r.LogEntry
	if r.staged { // charged, and logged by the attempt that commits the draft
		e.Usage, e.Cost = sessions.Usage{}, 0
	}
	spent := sessions.Spending{Kind: sessions.SpentSummary, Usage: e.Usage, Cost: e.Cost, Model: e.Model}
	if errors.Is(cause, sessions.ErrLeaseLost) {
		r.worker.Charge(ctx, r.Key, spent)
		return
	}
	e.Error, e.Failures, e.RetryAt, e.Rearm = compactionFailureReason(cause), s.CompactFailures, s.CompactRetryAt, s.RearmTokens
	grown := r.set.Policy.RearmAfter(r.set.Window, e.TokensBefore, false)
	switch {
	case NothingToCompact(cause):
		e.Outcome, e.Rearm = sessions.CompactionNothing, grown
	case errors.Is(cause, sessions.ErrConflict), isCut(ctx):
		e.Outcome = sessions.CompactionFailed
	default:
		e.Failures = s.CompactFailures + 1
		e.RetryAt = r.worker.shared.Now().Add(min(time.Minute<<min(s.CompactFailures, 5), 30*time.Minute))
		switch {
		case e.Outcome != sessions.CompactionRejected:
			e.Outcome = sessions.CompactionFailed
		case !r.partial: // the next part of a backlog is shorter
			e.Rearm = grown
		}
	}
	if r.Trigger == TriggerManual { // a failed manual attempt does not delay automatic ones
		e.Failures, e.RetryAt, e.Rearm = s.CompactFailures, s.CompactRetryAt, s.RearmTokens
	}
	e.TokensAfter = e.TokensBefore
	one, stop := context.WithTimeout(context.WithoutCancel(ctx), r.worker.shared.CommitTimeout)
	defer stop()
	if err := r.worker.store.Compactions.Log(one, r.lease, *e); err != nil {
		if sessions.IsFinal(err) {
			r.worker.Charge(ctx, r.Key, spent)
		}
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Compaction log row not written")
	}
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
