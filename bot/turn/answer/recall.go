package answer

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
	"ebb/memory/draft"
	"ebb/memory/show"
	"ebb/sessions"
)

// found is the result of a question's search of memory. Its zero value: nothing was searched for.
type found struct {
	hits     []memory.Hit
	searched bool // also if nothing was found
	room     int  // maximum tokens of the hits in a request
}

func (f found) facts() (ids []int64) {
	for _, h := range f.hits {
		if h.MemoryID != 0 {
			ids = append(ids, h.MemoryID)
		}
	}
	return ids
}

// searchMemory keeps its result out of the log and of later requests, so that the prefix of the prompt stays cacheable.
// A slow or failed search is left out: the model can search by itself.
func (q *question) searchMemory(ctx context.Context) found {
	cfg := &q.asker.cfg
	query := cfg.Views.RecallQuery(q.made.Asked)
	if query == "" || q.recallBudget() <= 0 {
		return found{}
	}
	soon, stop := context.WithTimeout(ctx, cmp.Or(cfg.Views.Remember().RecallTime, view.RecallTime))
	defer stop()
	asked := q.made.Asked[len(q.made.Asked)-1]
	hits, err := cfg.Memory.Search(soon, draft.ReaderOf(q.chat(nil)), memory.Query{Text: query, Limit: view.RecallHits, Now: asked.CreatedAt.In(cfg.Shared.Location)})
	if err != nil {
		if !errors.Is(context.Cause(ctx), llm.ErrStop) {
			zerolog.Ctx(ctx).Warn().Err(err).Msg("Memory could not be searched in time, the question goes without it")
		}
		return found{}
	}
	f := found{hits: slices.DeleteFunc(slices.Clone(hits), func(h memory.Hit) bool { return h.Outdated }), searched: true}
	// The view decides later which results a request repeats: room is reserved for all.
	none := cfg.Shared.Counter.Count(cfg.Views.Recalled(q.made.Lease.Key, nil, 0))
	room := none
	for _, h := range f.hits {
		room += cfg.Shared.Counter.Count(show.HitLine(h, cfg.Shared.Location))
	}
	f.room = max(none, min(room, q.recallBudget())) + tokens.MessageOverhead
	return f
}

func (q *question) recallBudget() int {
	cfg := &q.asker.cfg
	return min(cfg.Views.Remember().RecallTokens, cfg.Views.Settings(q.made.View.Session).Window.Usable()/8)
}

// recalled is the part of a request with recalled memory.
type recalled struct {
	text   string // empty: nothing was searched for, or the view shows all results
	tokens int
	facts  []int64
	events []int64
}

// recall leaves out facts that the view shows.
func (q *question) recall(v sessions.View) recalled {
	var r recalled
	fresh := view.NotSuspected(q.made.View, dropShown(q.found.hits, q.made.View, v))
	for _, h := range fresh {
		if h.MemoryID != 0 {
			r.facts = append(r.facts, h.MemoryID)
		} else {
			r.events = append(r.events, h.Seq)
		}
	}
	if !q.found.searched || len(fresh) == 0 && len(q.found.hits) > 0 {
		return r
	}
	if r.text = q.asker.cfg.Views.Recalled(q.made.Lease.Key, fresh, q.recallBudget()); r.text != "" {
		r.tokens = q.asker.cfg.Shared.Counter.Count(r.text) + tokens.MessageOverhead
	}
	return r
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
func (q *question) readPinned(ctx context.Context) {
	if !q.made.View.Session.PinnedDue {
		return
	}
	cfg := &q.asker.cfg
	soon, stop := context.WithTimeout(ctx, cmp.Or(cfg.Views.Remember().RecallTime, view.RecallTime))
	defer stop()
	pinned, err := cfg.Views.Pinned(soon, q.made.View)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Memory could not be pinned in time, the next turn tries it again")
		return
	}
	q.made.View.Session.Pinned, q.pinned = pinned.Text, pinned
}
