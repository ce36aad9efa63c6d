package bot

import (
	"context"
	"ebb/compaction/tokens"
	"ebb/memory"
	"ebb/memory/show"
	"ebb/sessions"
	"errors"
	"slices"

	"github.com/rs/zerolog"
)

// recall searches memory for what the turn's messages ask about. What it finds goes into the turn's requests alone, by
// default right before the question, so that the prompt before it stays as it is. It never enters the log. A search that
// fails, or takes long, is left out: the model can search by itself.
func (r *Runner) recall(ctx context.Context, t *turn) {
	query := r.views.recallQuery(t.asked)
	if query == "" || r.recallBudget(t) <= 0 {
		return
	}
	soon, stop := context.WithTimeout(ctx, recallTime)
	defer stop()
	asked := t.asked[len(t.asked)-1]
	hits, err := r.memory.Search(soon, t.reader(), memory.Query{Text: query, Limit: recallHits, Now: asked.CreatedAt.In(r.cfg.Location)})
	if err != nil {
		if !errors.Is(context.Cause(ctx), ErrStop) {
			zerolog.Ctx(ctx).Warn().Err(err).Msg("Memory could not be searched in time, the question goes without it")
		}
		return
	}
	t.found, t.searched = slices.DeleteFunc(slices.Clone(hits), func(h memory.Hit) bool { return h.Outdated }), true
	// Which of them a request repeats is known when its view is: room is made for all.
	none := r.counter.Count(r.views.recalled(t.key, nil, 0))
	room := none
	for _, h := range t.found {
		room += r.counter.Count(show.HitLine(h, r.cfg.Location))
	}
	t.recallRoom = max(none, min(room, r.recallBudget(t))) + tokens.MessageOverhead
}

// recallBudget is what may stand beside the turn's question, in tokens.
func (r *Runner) recallBudget(t *turn) int {
	return min(r.cfg.Remember.RecallTokens, r.views.settings(t.view.Session).Window.Usable()/8)
}

// beside writes what memory has on the question for a request on v: what that view shows anyway is not repeated. Empty
// where nothing was searched for, and where all that was found stands in the view.
func (r *Runner) beside(t *turn, v sessions.View) string {
	fresh := unseen(t.found, t.view, v)
	if !t.searched || len(fresh) == 0 && len(t.found) > 0 {
		return ""
	}
	return r.views.recalled(t.key, fresh, r.recallBudget(t))
}

// unseen are the finds that a request on sent does not show: sent is whole, or the end of its tail, for want of room. Of
// the events of the time that whole is of, those in neither are commands, and what they told: no part of the conversation.
func unseen(found []memory.Hit, whole, sent sessions.View) []memory.Hit {
	left := map[int64]bool{}
	for _, e := range whole.Tail[:len(whole.Tail)-len(sent.Tail)] {
		left[e.Seq] = true
	}
	return slices.DeleteFunc(slices.Clone(found), func(h memory.Hit) bool {
		if h.MemoryID != 0 {
			return memory.IsPinned(sent.Session.Pinned, h.MemoryID)
		}
		return h.Seq > whole.Session.CompactedSeq && !left[h.Seq]
	})
}

// pin reads memory for the head of the view where that is due: when a session begins, and after something was forgotten
// that it showed. The turn's commit keeps it, so that it stays as it is, byte for byte, until the next compaction. What
// can't be read soon is read by the next turn.
func (r *Runner) pin(ctx context.Context, t *turn) {
	if !t.view.Session.PinnedDue {
		return
	}
	soon, stop := context.WithTimeout(ctx, recallTime)
	defer stop()
	pinned, err := r.views.pinned(soon, t.view)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Memory could not be pinned in time, the next turn tries it again")
		return
	}
	t.view.Session.Pinned, t.pinned = pinned.Text, pinned
}
