package sql

// EmbeddingHash is what a text's vector is kept under.
func EmbeddingHash(content string) []byte { return embeddingHash(content) }
