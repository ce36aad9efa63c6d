package sql

import (
	"context"
	"time"

	"ebb/memory"
)

// Dense is the search by meaning alone.
func (s *Store) Dense(ctx context.Context, r memory.Reader, q memory.Query) ([]memory.Hit, error) {
	return s.dense(ctx, r, q, q.Limit)
}

// Patient lets searches by meaning take the time that they take on a machine under load.
func (s *Store) Patient() *Store {
	s.meaning.wait, s.meaning.compare = time.Minute, time.Minute
	return s
}

// EmbeddingHash is what a text's vector is kept under.
func EmbeddingHash(content string) []byte { return embeddingHash(content) }
