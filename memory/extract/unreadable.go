package extract

import (
	"context"
	"errors"

	"ebb/sessions"
	"ebb/sessions/llm"
)

const (
	// maxPending failed events in a row put the model at fault.
	maxPending = 3
	// maxPassed bounds the skipped events of one flush. The next goes on from there.
	maxPassed = 20
	// After lastTry failed flushes in a row, events are skipped without a read one for comparison.
	lastTry = 3
)

// Unread events before are then at fault themselves.
func (r *flushRun) markProved() {
	r.proved = true
	if len(r.pending) > 0 {
		r.addPassed(r.pending...)
		for seq, fault := range r.faulted {
			if r.out.Faulted == nil {
				r.out.Faulted = map[int64]error{}
			}
			r.out.Faulted[seq] = fault
		}
		r.pending, r.faulted, r.span, r.left, r.bare = nil, nil, 0, 0, false
	}
}

// Events in pieces count once.
func (r *flushRun) addPassed(seqs ...int64) {
	for _, seq := range seqs {
		if n := len(r.out.Passed); n == 0 || r.out.Passed[n-1] != seq {
			r.out.Passed = append(r.out.Passed, seq)
		}
	}
}

// A skipped event counts only once the model reads a later one: after several in a row the model is at fault.
func (r *flushRun) skipEvent(ctx context.Context, err error) error {
	if len(r.out.Passed)+len(r.pending) >= maxPassed {
		return r.wrapError(err)
	}
	seq := r.queue[0].Seq
	if fault, known := errors.AsType[*llm.CallError](err); known && fault.RequestFault() {
		if r.faulted == nil {
			r.faulted = map[int64]error{}
		}
		r.faulted[seq] = fault
	}
	r.dropEvents(1)
	if r.pending = append(r.pending, seq); len(r.pending) == 1 {
		r.pendingErr = err
	}
	if len(r.pending) >= maxPending {
		return r.settlePending(ctx)
	}
	r.span, r.left = 1, len(r.queue)
	return nil
}

// Pending events are owed unless the model read before, or this happened often enough, as after any fault of a model.
// Otherwise the model gets a harmless sentence. If it reads that, the events are skipped and not owed forever.
func (r *flushRun) settlePending(ctx context.Context) error {
	if !r.proved && r.due.Session.FlushFailures < lastTry || !r.modelWorks(ctx) {
		return r.wrapError(r.pendingErr)
	}
	r.markProved()
	return r.commitFacts(ctx, r.doneThrough(), nil, "")
}

func (r *flushRun) modelWorks(ctx context.Context) bool {
	was := *r
	text := "发布日期定在 5 月 20 日，由 Alice 负责。"
	if r.flusher.Language == "en" {
		text = "The release is due on 20 May, and Alice owns it."
	}
	r.queue = []sessions.Event{{Role: sessions.RoleUser, Content: text}}
	r.pending, r.span, r.left, r.bare = nil, 0, 0, true
	p, err := r.nextPart(ctx)
	if err == nil {
		_, _, err = r.askModel(ctx, &p)
	}
	r.queue, r.pending, r.bare = was.queue, was.pending, was.bare
	return err == nil
}
