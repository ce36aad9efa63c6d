package extract

import (
	"context"
	"fmt"
	"slices"

	"ebb/memory"
	"ebb/memory/draft"
	"ebb/sessions"
)

func (r *flushRun) wrapError(err error) error {
	return fmt.Errorf("extract facts: %w", err)
}

// Events outside the conversation count as done.
func (r *flushRun) doneThrough() int64 {
	if len(r.queue) > 0 {
		return max(r.out.Through, r.queue[0].Seq-1)
	}
	return r.end
}

func (r *flushRun) dropEvents(n int) {
	r.queue = r.queue[n:]
	if r.left = max(0, r.left-n); r.left == 0 {
		r.span = 0
	}
	r.fresh, r.again = nil, 0
}

func (r *flushRun) limitParts(n int) { r.span, r.left = n/2, n }

// commitFacts stores facts, receipt and cursor in one transaction. Only the last part closes the cycle, so that a run cut off in the
// middle is due again. Usage is charged with the first commit behind it.
func (r *flushRun) commitFacts(ctx context.Context, through int64, drafts []memory.Draft, model string) error {
	last := through >= r.due.Through
	epoch := r.due.Epoch
	if !last {
		epoch = r.due.Session.FlushEpoch // the cycle is flushed with its last part
	}
	got, err := r.flusher.Flushes.Flush(ctx, r.due.Lease, memory.Flush{
		From: r.out.Through, Through: through, Gen: r.due.Session.Gen, Epoch: epoch, Last: last, Trigger: r.due.Trigger,
		Drafts: drafts, Usage: r.paid, Cost: r.paidCost, Model: model,
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStorage, err)
	}
	r.paid, r.paidCost, r.paidBy = sessions.Usage{}, 0, ""
	all := &r.out.Receipt
	all.Saved, all.New = append(all.Saved, got.Saved...), append(all.New, got.New...)
	for _, id := range got.Duplicate { // an earlier part may have saved or found it
		if !slices.Contains(all.Saved, id) && !slices.Contains(all.Duplicate, id) {
			all.Duplicate = append(all.Duplicate, id)
		}
	}
	r.out.Nothing = r.out.Nothing && len(drafts) == 0
	r.out.Through = through
	return nil
}

// A fact without a known source gets the range of all events, by which an erasure of one finds it.
func (r *flushRun) routeFacts(events []sessions.Event, s draft.Save) []memory.Draft {
	chat := draft.ChatOf(r.due.Session, r.page) // a named person may have spoken in another part
	chat.Said, chat.Location, chat.TaskTTL = events, r.flusher.Location, r.flusher.TaskTTL
	drafts, refused := draft.RouteFacts(s.Facts, chat)
	for kind, n := range s.Refused {
		r.out.Refused[kind] += n
	}
	for _, f := range refused {
		r.out.Refused[f.Kind]++
	}
	for i := range drafts {
		if d := &drafts[i]; d.StartSeq == 0 {
			d.StartSeq, d.EndSeq = events[0].Seq, events[len(events)-1].Seq
		}
	}
	return drafts
}
