package turn

import (
	"context"
	"errors"
	"slices"

	"ebb/bot/llm"
	"ebb/bot/view"
	"ebb/compaction/tokens"
	"ebb/memory"
	"ebb/memory/show"
	"ebb/sessions"

	"github.com/rs/zerolog"
)

// recall searches memory for what the turn's messages ask about. What it finds goes into the turn's requests alone, by
// default right before the question, so that the prompt before it stays as it is. It never enters the log. A search that
// fails, or takes long, is left out: the model can search by itself.
func (r *Runner) recall(ctx context.Context, t *Turn) {
	query := r.views.RecallQuery(t.Asked)
	if query == "" || r.recallBudget(t) <= 0 {
		return
	}
	soon, stop := context.WithTimeout(ctx, view.RecallTime)
	defer stop()
	asked := t.Asked[len(t.Asked)-1]
	hits, err := r.memory.Search(soon, t.reader(), memory.Query{Text: query, Limit: view.RecallHits, Now: asked.CreatedAt.In(r.cfg.Location)})
	if err != nil {
		if !errors.Is(context.Cause(ctx), llm.ErrStop) {
			zerolog.Ctx(ctx).Warn().Err(err).Msg("Memory could not be searched in time, the question goes without it")
		}
		return
	}
	t.Found, t.searched = slices.DeleteFunc(slices.Clone(hits), func(h memory.Hit) bool { return h.Outdated }), true
	// Which of them a request repeats is known when its view is: room is made for all.
	none := r.counter.Count(r.views.Recalled(t.Key, nil, 0))
	room := none
	for _, h := range t.Found {
		room += r.counter.Count(show.HitLine(h, r.cfg.Location))
	}
	t.recallRoom = max(none, min(room, r.recallBudget(t))) + tokens.MessageOverhead
}

// recallBudget is what may stand beside the turn's question, in tokens.
func (r *Runner) recallBudget(t *Turn) int {
	return min(r.cfg.Remember.RecallTokens, r.views.Settings(t.View.Session).Window.Usable()/8)
}

// beside writes what memory has on the question for a request on v: what that view shows anyway is not repeated. Empty
// where nothing was searched for, and where all that was found stands in the view.
func (r *Runner) beside(t *Turn, v sessions.View) string {
	fresh := unseen(t.Found, t.View, v)
	if !t.searched || len(fresh) == 0 && len(t.Found) > 0 {
		return ""
	}
	return r.views.Recalled(t.Key, fresh, r.recallBudget(t))
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
func (r *Runner) pin(ctx context.Context, t *Turn) {
	if !t.View.Session.PinnedDue {
		return
	}
	soon, stop := context.WithTimeout(ctx, view.RecallTime)
	defer stop()
	pinned, err := r.views.Pinned(soon, t.View)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Memory could not be pinned in time, the next turn tries it again")
		return
	}
	t.View.Session.Pinned, t.Pinned = pinned.Text, pinned
}
