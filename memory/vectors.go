package memory

import (
	"context"
	"time"

	"ebb/sessions"
)

// Embedder makes vectors of texts: near by cosine where the texts mean the same. It is safe for concurrent use. An
// error may be an [EmbedFault].
type Embedder interface {
	// Embed returns a vector for each text, all of one length.
	Embed(ctx context.Context, texts []string) ([][]float32, error)

	// Model names the model and the vectors' length; vectors of two names are never compared.
	Model() string
}

// EmbedFault classifies an error of an [Embedder].
type EmbedFault interface {
	error
	Unfit() bool         // these texts, or their number, are refused
	Wait() time.Duration // pause that the endpoint asks for; 0: none
}

// Unembedded is a text that has no vector of a model yet.
type Unembedded struct {
	ScopeKey string       // key of its vector
	Hash     []byte       // hash of the whole content, also where Content is its beginning
	Session  sessions.Key // session of the log or of the memory's source
	MemoryID int64        // 0 for an event
	Seq      int64        // 0 for a memory
	Content  string
	Known    []float32 // the vector that an equal text has; nil: none
}
