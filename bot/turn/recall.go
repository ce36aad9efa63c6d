package turn

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/rs/zerolog"

	"ebb/bot/llm"
	"ebb/bot/view"
	"ebb/compaction/tokens"
	"ebb/memory"
	"ebb/memory/show"
	"ebb/sessions"
)

// searchMemory keeps its result out of the log and of later requests, so that the prefix of the prompt stays cacheable.
// A slow or failed search is left out: the model can search by itself.
func (r *Runner) searchMemory(ctx context.Context, t *Turn) {
	query := r.views.RecallQuery(t.Asked)
	if query == "" || r.recallBudget(t) <= 0 {
		return
	}
	soon, stop := context.WithTimeout(ctx, cmp.Or(r.cfg.Remember.RecallTime, view.RecallTime))
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
	// The view decides later which results a request repeats: room is reserved for all.
	none := r.counter.Count(r.views.Recalled(t.Key, nil, 0))
	room := none
	for _, h := range t.Found {
		if h.MemoryID != 0 {
			t.read = append(t.read, h.MemoryID)
		}
		room += r.counter.Count(show.HitLine(h, r.cfg.Location))
	}
	t.recallRoom = max(none, min(room, r.recallBudget(t))) + tokens.MessageOverhead
}

func (r *Runner) recallBudget(t *Turn) int {
	return min(r.cfg.Remember.RecallTokens, r.views.Settings(t.View.Session).Window.Usable()/8)
}

// writeRecalled leaves out facts that the view shows. It is empty if nothing was searched for, or the view shows all
// results.
func (r *Runner) writeRecalled(t *Turn, v sessions.View) string {
	fresh := view.NotSuspected(t.View, dropShown(t.Found, t.View, v))
	t.refusals.facts, t.refusals.events = nil, nil
	for _, h := range fresh {
		if h.MemoryID != 0 {
			t.refusals.facts = append(t.refusals.facts, h.MemoryID)
		} else {
			t.refusals.events = append(t.refusals.events, h.Seq)
		}
	}
	if !t.searched || len(fresh) == 0 && len(t.Found) > 0 {
		return ""
	}
	return r.views.Recalled(t.Key, fresh, r.recallBudget(t))
}

// dropShown removes the results that a request on sent shows. sent is whole, or the end of its tail if room was short.
// Events of that time that are in neither are commands and their answers, and are removed too.
func dropShown(found []memory.Hit, whole, sent sessions.View) []memory.Hit {
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

// readPinned reads pinned memory when due: at the start of a session, and after a pinned fact was forgotten. The turn's
// commit stores it, so that it stays identical until the next compaction.
func (r *Runner) readPinned(ctx context.Context, t *Turn) {
	if !t.View.Session.PinnedDue {
		return
	}
	soon, stop := context.WithTimeout(ctx, cmp.Or(r.cfg.Remember.RecallTime, view.RecallTime))
	defer stop()
	pinned, err := r.views.Pinned(soon, t.View)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Memory could not be pinned in time, the next turn tries it again")
		return
	}
	t.View.Session.Pinned, t.Pinned = pinned.Text, pinned
}
