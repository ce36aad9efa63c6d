package answer

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/rs/zerolog"

	"ebb/bot/parts"
	"ebb/bot/view"
	"ebb/compaction/tokens"
	"ebb/memory"
	"ebb/memory/draft"
	"ebb/memory/show"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// recaller reads the memory that a question's requests show.
type recaller struct {
	shared *parts.Shared
	views  *view.Builder
	memory Memory
}

// remember reads pinned memory when due, and searches the rest for the question.
func (r recaller) remember(ctx context.Context, q question) question {
	q = r.readPinned(ctx, q)
	q.found = r.search(ctx, q)
	return q
}

// search keeps its result out of the log and of later requests, so that the prefix of the prompt stays cacheable.
// A slow or failed search is left out: the model can search by itself.
func (r recaller) search(ctx context.Context, q question) found {
	query, from := r.views.Memory.RecallQuery(q.made.View.Session, q.made.Asked)
	if query == "" || r.budget(q) <= 0 {
		return found{}
	}
	soon, stop := context.WithTimeout(ctx, cmp.Or(r.views.Memory.Remember.RecallTime, view.RecallTime))
	defer stop()
	asked := q.made.Asked[len(q.made.Asked)-1]
	hits, err := r.memory.Search(soon, draft.ReaderOf(q.chat(nil)), memory.Query{Text: query, From: from, Limit: view.RecallHits, Now: asked.CreatedAt.In(r.shared.Location)})
	if err != nil {
		if !errors.Is(context.Cause(ctx), llm.ErrStop) {
			zerolog.Ctx(ctx).Warn().Err(err).Msg("Memory could not be searched in time, the question goes without it")
		}
		return found{}
	}
	if from == memory.FromFiles && len(hits) == 0 {
		return found{} // the message does not ask about memory
	}
	f := found{hits: slices.DeleteFunc(slices.Clone(hits), func(h memory.Hit) bool { return h.Outdated }), searched: true}
	// The view decides later which results a request repeats: room is reserved for all.
	none := r.shared.Counter.Count(r.views.Memory.Recalled(q.made.Lease.Key, nil, 0))
	room := none
	for _, h := range f.hits {
		room += r.shared.Counter.Count(show.HitLine(h, r.shared.Location))
	}
	f.room = max(none, min(room, r.budget(q))) + tokens.MessageOverhead
	return f
}

// budget is the tokens for recalled memory.
func (r recaller) budget(q question) int {
	return min(r.views.Memory.Remember.RecallTokens, r.views.Choices.Settings(q.made.View.Session).Window.Usable()/8)
}

// recalled is the part of a request with recalled memory.
type recalled struct {
	text   string // empty: nothing was searched for, or the view shows all results
	tokens int
	facts  []int64
	events []int64
	pages  []sessions.PageID
}

// show makes the part of a request that shows v. It leaves out facts that the view shows.
func (r recaller) show(q question, v sessions.View) recalled {
	var part recalled
	fresh := view.NotSuspected(q.made.View, dropShown(q.found.hits, q.made.View, v))
	for _, h := range fresh {
		switch {
		case h.MemoryID != 0:
			part.facts = append(part.facts, h.MemoryID)
		case h.Seq != 0:
			part.events = append(part.events, h.Seq)
		case h.File != 0:
			part.pages = append(part.pages, h.Page)
		}
	}
	if q.found.searched && (len(fresh) > 0 || len(q.found.hits) == 0) {
		part.text = r.views.Memory.Recalled(q.made.Lease.Key, fresh, r.budget(q))
	}
	if part.text = joinData(part.text, q.media.passages); part.text != "" {
		part.tokens = r.shared.Counter.Count(part.text) + tokens.MessageOverhead
	}
	return part
}

// joinData joins recalled memory and parts of documents. Later requests have neither.
func joinData(recalled, passages string) string { return strings.TrimSpace(recalled + "\n" + passages) }

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
func (r recaller) readPinned(ctx context.Context, q question) question {
	if !q.made.View.Session.PinnedDue {
		return q
	}
	soon, stop := context.WithTimeout(ctx, cmp.Or(r.views.Memory.Remember.RecallTime, view.RecallTime))
	defer stop()
	pinned, err := r.views.Memory.Pinned(soon, q.made.View)
	if err != nil {
		if !errors.Is(context.Cause(ctx), llm.ErrStop) {
			zerolog.Ctx(ctx).Warn().Err(err).Msg("Memory could not be pinned in time, the next turn tries it again")
		}
		return q
	}
	q.made.View.Session.Pinned, q.pinned = pinned.Text, pinned
	return q
}
