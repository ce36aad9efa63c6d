package facts

import (
	"context"
	"fmt"

	"ebb/memory"
)

// Pinned implements memory.Store.
func (s *Store) Pinned(ctx context.Context, r memory.Reader, limit int) ([]memory.Memory, error) {
	memories, err := s.reader.List(ctx, r, limit)
	if err == nil {
		err = s.identities.NameIn(ctx, r.Key, memories)
	}
	if err != nil {
		return nil, fmt.Errorf("listing memories: %w", err)
	}
	return memories, nil
}
