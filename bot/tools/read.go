package tools

import (
	"context"
	"slices"
	"time"

	"ebb/bot/chat"
	"ebb/memory"
	"ebb/sessions"
)

// noted is memory as a model reads it: it notes the memories that are read, and leaves out what the model refuses or may refuse.
type noted struct {
	from  Parts
	in    chat.ToolInput
	reads sessions.ModelID
}

func readBy(in chat.ToolInput, from Parts) noted {
	if in.Read == nil {
		in.Read = func(int64) {}
	}
	return noted{from, in, in.Reader.Reads}
}

// Range implements show.Log.
func (n noted) Range(ctx context.Context, key sessions.Key, from, through int64, limit int) ([]sessions.Event, error) {
	events, err := n.from.Search.Range(ctx, key, from, through, limit)
	if events = sessions.Readable(events, n.reads); key == n.in.Reader.Key {
		events = n.in.Suspicion.Readable(events, n.reads)
	}
	return events, err
}

// History implements show.Log.
func (n noted) History(ctx context.Context, key sessions.Key, q memory.LogQuery) (memory.LogMatches, error) {
	q.Reads = n.reads
	found, err := n.from.Search.History(ctx, key, q)
	if n.in.Suspicion.Concerns(n.reads) {
		for i, m := range found.Events {
			found.Events[i].Event = n.in.Suspicion.Readable([]sessions.Event{m.Event}, n.reads)[0]
		}
	}
	return found, err
}

// Search implements memory.Searcher.
func (n noted) Search(ctx context.Context, r memory.Reader, q memory.Query) ([]memory.Hit, error) {
	hits, err := n.from.Search.Search(ctx, r, q)
	if n.in.Suspicion.Concerns(n.reads) {
		hits = slices.DeleteFunc(hits, func(h memory.Hit) bool {
			return h.MemoryID != 0 && n.suspects(h.MemoryID) || h.MemoryID == 0 && n.in.Suspicion.Covers(n.reads, h.Seq) || n.in.Suspicion.CoversPage(n.reads, h.Page)
		})
	}
	for _, h := range hits {
		if h.MemoryID != 0 {
			n.in.Read(h.MemoryID)
		}
	}
	return hits, err
}

// Pinned implements show.Library.
func (n noted) Pinned(ctx context.Context, r memory.Reader, limit int) ([]memory.Memory, error) {
	return n.all(n.from.Facts.Pinned(ctx, r, limit))
}

// Values implements show.Library.
func (n noted) Values(ctx context.Context, r memory.Reader, id int64) ([]memory.Memory, error) {
	return n.all(n.from.Facts.Values(ctx, r, id))
}

// DigestsOf implements show.Library.
func (n noted) DigestsOf(ctx context.Context, r memory.Reader, from, until time.Time) ([]memory.Memory, error) {
	return n.all(n.from.Digests.DigestsOf(ctx, r, from, until))
}

// suspects reports whether a fact is under suspicion. The rows of a pinned text are not known: it may have had any.
func (n noted) suspects(id int64) bool {
	return n.in.Suspicion.Concerns(n.reads) && n.in.Suspicion.Pinned || n.in.Suspicion.CoversFact(n.reads, id)
}

func (n noted) all(list []memory.Memory, err error) ([]memory.Memory, error) {
	for i, m := range list {
		n.in.Read(m.ID)
		if n.suspects(m.ID) {
			list[i].Content, list[i].SaidByNick, list[i].SubjectNick = sessions.WithheldText, "", ""
		}
	}
	return list, err
}
