package facts

import (
	"context"
	"fmt"

	"ebb/memory"
	"ebb/sessions"
)

// Pinned implements memory.Store.
func (s *Store) Pinned(ctx context.Context, r memory.Reader, limit int) ([]memory.Memory, error) {
	memories, err := s.reader.List(ctx, r, 0, limit)
	if err == nil {
		err = s.identities.NameIn(ctx, r.Key, memories)
	}
	if err != nil {
		return nil, fmt.Errorf("listing memories for session %s: %w", r.Key, err)
	}
	return memories, nil
}

// Memory returns one memory in force that the reader may see, or sessions.ErrNotFound.
func (s *Store) Memory(ctx context.Context, r memory.Reader, id int64) (memory.Memory, error) {
	memories, err := s.reader.List(ctx, r, id, 1)
	if err == nil && len(memories) == 0 {
		err = sessions.ErrNotFound
	}
	if err != nil {
		return memory.Memory{}, fmt.Errorf("reading memory %d for session %s: %w", id, r.Key, err)
	}
	return memories[0], nil
}
