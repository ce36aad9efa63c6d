package memory

import (
	"context"
	"time"

	"ebb/sessions"
)

// Embedder makes vectors of texts: near each other, by cosine, where the texts mean the same. It is safe for
// concurrent use. An error may be an [EmbedFault].
type Embedder interface {
	// Embed returns a vector for each text, all of one length.
	Embed(ctx context.Context, texts []string) ([][]float32, error)

	// Model names the model and the length of its vectors: vectors of two names are never compared.
	Model() string
}

// EmbedFault is an error of an [Embedder] that classifies the fault.
type EmbedFault interface {
	error
	Unfit() bool         // the endpoint refuses these texts, or their number
	Wait() time.Duration // pause that the endpoint asks for; 0: none
}

// Unembedded is a text that has no vector of a model yet.
type Unembedded struct {
	ScopeKey string       // that its vector belongs to
	Hash     []byte       // hash of the whole content, also where Content is its beginning
	Session  sessions.Key // session of the log or of the memory's source
	MemoryID int64        // id of a memory; else 0
	Seq      int64        // place of an event; else 0
	Content  string
	Known    []float32 // the vector that the same text has elsewhere; nil: none has
}

// Vectors keeps the vectors of texts.
type Vectors interface {
	// Unembedded lists at most limit texts without a vector of a model: memories in force, people's messages and the
	// model's answers. An empty list means that all have one.
	Unembedded(ctx context.Context, model string, limit int) ([]Unembedded, error)

	// KeepVectors stores a vector for each text that still exists. An empty vector says that the text can have none, so
	// that it is not listed again.
	KeepVectors(ctx context.Context, model string, texts []Unembedded, vectors [][]float32) error

	// DropVectors deletes the vectors of other models and returns how many there were.
	DropVectors(ctx context.Context, model string) (int, error)
}
