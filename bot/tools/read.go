package tools

import (
	"context"
	"time"

	"ebb/bot/chat"
	"ebb/memory"
)

type noted struct {
	memory.Store
	read func(id int64)
}

func readBy(in chat.ToolInput, s memory.Store) memory.Store {
	if in.Read == nil {
		return s
	}
	return noted{s, in.Read}
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
