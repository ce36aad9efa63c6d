package memory

import (
	"context"
	"ebb/sessions"
	"time"
)

// Embedder makes vectors of texts: near each other, by cosine, where the texts mean the same. It is safe for
// concurrent use. An error may be an [EmbedFault].
type Embedder interface {
	// Embed returns a vector for each text, all of one length.
	Embed(ctx context.Context, texts []string) ([][]float32, error)

	// Model names what makes the vectors, their length included: vectors of two names are never compared.
	Model() string
}

// EmbedFault is an error of an [Embedder] that says what can be done about it.
type EmbedFault interface {
	error
	Unfit() bool         // the endpoint does not take these texts, or not so many at once
	Wait() time.Duration // how long the endpoint wants to be left alone; 0: it does not say
}

// Unembedded is a text that has no vector of a model yet.
type Unembedded struct {
	ScopeKey string       // that its vector belongs to
	Hash     []byte       // of the whole content, also where Content is its beginning
	Session  sessions.Key // whose log it stands in, or that the memory came from
	MemoryID int64        // of a memory; else 0
	Seq      int64        // of an event; else 0
	Content  string
	Known    []float32 // the vector that the same text has elsewhere; nil: none has
}

// Vectors keeps the vectors of texts.
type Vectors interface {
	// Unembedded lists at most limit texts that have no vector of a model: memories in force, and what people and the
	// model said. None: all have one.
	Unembedded(ctx context.Context, model string, limit int) ([]Unembedded, error)

	// KeepVectors keeps a vector for each text that still stands where it was read. An empty one says that the text can
	// have none, so that it is not listed again.
	KeepVectors(ctx context.Context, model string, texts []Unembedded, vectors [][]float32) error

	// DropVectors deletes the vectors of other models and returns how many there were.
	DropVectors(ctx context.Context, model string) (int, error)
}
