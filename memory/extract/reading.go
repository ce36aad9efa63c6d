package extract

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ebb/memory"
	"ebb/memory/draft"
	"ebb/sessions"
	"ebb/sessions/llm"
)

const (
	// The first events may answer a command within lookBack events before the range.
	lookBack = 8
	// maxAgain bounds the repeated readings of one part that filled its call.
	maxAgain = 3
	// maxMore bounds the calls for a full part and its halves, maxStale those in a row without a new fact: some models
	// fill their calls with anything.
	maxMore  = 12
	maxStale = 4
)

// Flush extracts the facts of the events after the session's flush cursor, up to d.Through. Each part of the range
// commits on its own: after an error the cursor stands behind the last part that did.
//
// A part that the model refuses is halved down to one event. It is skipped once the model has read a later one, or
// else a harmless sentence: the model is then not at fault. If it read no event at all, only after
// [sessions.Session.FlushFailures] in a row. See [Outcome.Passed].
func (f *Flusher) Flush(ctx context.Context, d FlushRequest) (Outcome, error) {
	at := d.Session.FlushedSeq
	r := &flushRun{flusher: f, due: d, model: f.Name, limit: f.Context, end: at, out: Outcome{Nothing: true, Through: at, Refused: map[string]int{}}}
	err := r.readRange(ctx)
	r.out.Lost, r.out.LostCost, r.out.LostModel = r.paid, r.paidCost, r.paidBy
	return r.out, err
}

// readRange reads parts until the range is done. A part that the model can't answer is halved, down to one event, which is then left
// out: one refused message must not keep the facts of all others. A fault of the model itself ends the run, and the rest stays owed.
func (r *flushRun) readRange(ctx context.Context) error {
	for {
		if len(r.queue) == 0 {
			more, err := r.fillQueue(ctx)
			if err != nil {
				return err
			}
			if !more {
				return r.finishRange(ctx)
			}
			continue
		}
		if r.isOverspent() {
			return r.wrapError(ErrSpent)
		}
		p, err := r.nextPart(ctx)
		if err != nil {
			return r.wrapError(err)
		}
		save, called, err := r.askModel(ctx, &p)
		switch {
		case err == nil:
			err = r.storePart(ctx, p, save, called.UsedModel())
		case ctx.Err() != nil || !ownFault(err):
			return r.wrapError(err)
		case len(p.events) > 1:
			r.limitParts(len(p.events))
			err = nil
		default:
			err = r.skipEvent(ctx, err)
		}
		if err != nil {
			return err
		}
	}
}

func (r *flushRun) isOverspent() bool {
	return r.due.Budget > 0 && r.out.Usage.Prompt+r.out.Usage.Completion >= r.due.Budget
}

func ownFault(err error) bool {
	fault, known := errors.AsType[*llm.CallError](err)
	return errors.Is(err, draft.ErrNotSaved) || errors.Is(err, ErrUnusable) || known && fault.RequestFault()
}

// fillQueue reads the next page of events, with some before it: a command and its answer, or a question and its message, may stand on
// two pages.
func (r *flushRun) fillQueue(ctx context.Context) (more bool, err error) {
	if r.end >= r.due.Through {
		return false, nil
	}
	if r.before == nil && r.end > 0 {
		earlier, err := r.readPage(ctx, max(0, r.end-lookBack), r.end)
		if err != nil {
			return false, err
		}
		r.keepLastMessage(earlier)
	}
	events, err := r.readPage(ctx, r.end, r.due.Through)
	if err != nil {
		return false, err
	}
	r.end = r.due.Through
	if len(events) == page {
		r.end = events[page-1].Seq
	}
	r.page = r.flusher.Talk(append(r.before, events...)) // commands are left out with their answers, also if a page ends between the two
	for len(r.page) > 0 && len(events) > 0 && r.page[0].Seq < events[0].Seq {
		r.page = r.page[1:]
	}
	r.keepLastMessage(events)
	r.queue, r.span, r.left = r.page, 0, 0
	if len(r.pending) > 0 {
		r.span, r.left = 1, len(r.queue)
	}
	return true, nil
}

func (r *flushRun) readPage(ctx context.Context, from, through int64) ([]sessions.Event, error) {
	events, err := r.flusher.Log.Range(ctx, r.due.Session.Key, from, through, page)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStorage, err)
	}
	return events, nil
}

func (r *flushRun) keepLastMessage(events []sessions.Event) {
	for _, e := range events {
		if e.Role == sessions.RoleUser {
			r.before = []sessions.Event{e}
		}
	}
}

// storePart saves the facts of a part. An answer with the maximum of facts may lack some, so its events are read again, as long as
// that brings new ones. The cursor moves only when a part is finished: after a crash the rest is read again.
func (r *flushRun) storePart(ctx context.Context, p flushPart, s draft.Save, model string) error {
	r.markProved()
	drafts := r.routeFacts(p.events, s)
	if p.events[0].Seq > r.dense {
		r.more, r.stale = 0, 0
	}
	if !s.Full {
		r.stale = 0
	}
	if !s.Full || r.more >= maxMore || r.isOverspent() {
		r.dropEvents(len(p.events))
		if s.Full { // the rest is read as if nothing had been full
			r.span, r.left = 0, 0
		}
		return r.commitFacts(ctx, r.doneThrough(), drafts, model)
	}
	before := len(r.out.Receipt.Saved)
	if err := r.commitFacts(ctx, r.out.Through, drafts, model); err != nil {
		return err
	}
	saved := len(r.out.Receipt.Saved) - before
	if saved == 0 && r.again > 0 { // a second look, and nothing new
		more, err := r.probeSecondHalf(ctx, p.events)
		if err != nil {
			return err
		}
		if !more {
			r.finishPart(p.events)
			return r.commitFacts(ctx, r.doneThrough(), nil, model)
		}
	}
	if fresh := 2*saved >= max(1, len(drafts)); r.readAgain(p.events, drafts, fresh) {
		return nil
	}
	return r.commitFacts(ctx, r.doneThrough(), nil, model)
}

// A part that filled a call is read again with its stored facts as known. fresh says that at least half of its facts
// were new. The part is halved when it yields few or was read too often. It is done, false, if the model only repeats
// known facts.
func (r *flushRun) readAgain(events []sessions.Event, drafts []memory.Draft, fresh bool) bool {
	left, known := r.left, r.more == 0 || r.stale >= maxStale
	r.dense, r.more, r.stale = max(r.dense, events[len(events)-1].Seq), r.more+1, r.stale+1
	if fresh {
		r.stale = 0
	}
	switch {
	case !fresh && known:
		r.finishPart(events)
		return false
	case fresh && r.again < maxAgain:
		r.again++
		for _, d := range drafts {
			r.fresh = append(r.fresh, memory.Memory{Content: d.Content})
		}
	case len(events) > 1:
		r.limitParts(len(events))
		r.left = max(r.left, left)
	case r.cutInTwo():
	default:
		r.dropEvents(1)
		return false
	}
	return true
}

// The following parts are read as if none had filled a call.
func (r *flushRun) finishPart(events []sessions.Event) {
	r.dropEvents(len(events))
	r.more, r.span, r.left = maxMore, 0, 0
}

// The second reading had no new fact: a model that always starts at the beginning may not have reached it.
func (r *flushRun) probeSecondHalf(ctx context.Context, events []sessions.Event) (more bool, err error) {
	half := slices.Clone(events[len(events)/2:])
	if len(events) == 1 {
		text := r.flusher.Clean(half[0].Content)
		texts := r.cutPieces(text, r.tokensOf(text)/2+1)
		half[0].Content = texts[len(texts)-1]
	}
	queue, span, left := r.queue, r.span, r.left
	r.queue, r.span, r.left = half, 0, 0
	p, err := r.nextPart(ctx)
	var save draft.Save
	var called llm.Response
	if err == nil {
		save, called, err = r.askModel(ctx, &p)
	}
	r.queue, r.span, r.left = queue, span, left
	r.more++
	switch {
	case err != nil && ctx.Err() == nil && ownFault(err):
		return true, nil // as if it had not been tried
	case err != nil:
		return false, r.wrapError(err)
	}
	before := len(r.out.Receipt.Saved)
	err = r.commitFacts(ctx, r.out.Through, r.routeFacts(p.events, save), called.UsedModel())
	return len(r.out.Receipt.Saved) > before, err
}

func (r *flushRun) finishRange(ctx context.Context) error {
	switch {
	case len(r.pending) > 0:
		return r.settlePending(ctx)
	case r.out.Through < r.due.Through:
		return r.commitFacts(ctx, r.due.Through, nil, "")
	}
	return nil
}
