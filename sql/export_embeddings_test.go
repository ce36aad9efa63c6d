package sql

import "ebb/sql/vectors"

// EmbeddingHash is what a text's vector is kept under.
func EmbeddingHash(content string) []byte { return vectors.Hash(content) }
