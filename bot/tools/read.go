package tools

import (
	"context"
	"time"

	"ebb/bot/chat"
	"ebb/memory"
	"ebb/sessions"
)

// noted is memory as a model reads it: it notes the memories that are read, and leaves out what the model refuses.
type noted struct {
	memory.Store
	reads sessions.ModelID
	read  func(id int64)
}

func readBy(in chat.ToolInput, s memory.Store) memory.Store {
	n := noted{s, in.Reader.Reads, in.Read}
	if n.read == nil {
		n.read = func(int64) {}
	}
	return n
}

// Range implements memory.ReadStore.
func (n noted) Range(ctx context.Context, key sessions.Key, from, through int64, limit int) ([]sessions.Event, error) {
	events, err := n.Store.Range(ctx, key, from, through, limit)
	return sessions.Readable(events, n.reads), err
}

// History implements memory.ReadStore.
func (n noted) History(ctx context.Context, key sessions.Key, q memory.LogQuery) (memory.LogMatches, error) {
	q.Reads = n.reads
	return n.Store.History(ctx, key, q)
}

// Search implements memory.ReadStore.
func (n noted) Search(ctx context.Context, r memory.Reader, q memory.Query) ([]memory.Hit, error) {
	hits, err := n.Store.Search(ctx, r, q)
	for _, h := range hits {
		if h.MemoryID != 0 {
			n.read(h.MemoryID)
		}
	}
	return hits, err
}

// Pinned implements memory.ReadStore.
func (n noted) Pinned(ctx context.Context, r memory.Reader, limit int) ([]memory.Memory, error) {
	return n.all(n.Store.Pinned(ctx, r, limit))
}

// Values implements memory.ReadStore.
func (n noted) Values(ctx context.Context, r memory.Reader, id int64) ([]memory.Memory, error) {
	return n.all(n.Store.Values(ctx, r, id))
}

// DigestsOf implements memory.Digests.
func (n noted) DigestsOf(ctx context.Context, r memory.Reader, from, until time.Time) ([]memory.Memory, error) {
	return n.all(n.Store.DigestsOf(ctx, r, from, until))
}

func (n noted) all(list []memory.Memory, err error) ([]memory.Memory, error) {
	for _, m := range list {
		n.read(m.ID)
	}
	return list, err
}
