package tools

import (
	"context"
	"time"

	"ebb/memory"
	"ebb/sessions"
)

// Facts saves and lists facts. See [memory.Facts].
type Facts interface {
	Save(ctx context.Context, l sessions.Lease, drafts []memory.Draft) (memory.Receipt, error)
	Pinned(ctx context.Context, r memory.Reader, limit int) ([]memory.Memory, error)
	Values(ctx context.Context, r memory.Reader, id int64) ([]memory.Memory, error)
}

// Digests lists the digests of days. See [memory.Digests].
type Digests interface {
	DigestsOf(ctx context.Context, r memory.Reader, from, to time.Time) ([]memory.Memory, error)
}

// Blobs are the offloaded tool results of a session.
type Blobs interface {
	// Blob returns sessions.ErrNotFound if the session has no result at the address.
	Blob(ctx context.Context, key sessions.Key, blob string) (string, error)
}

// Files are the pictures and documents of a session. See package media.
type Files interface {
	Attachments(ctx context.Context, key sessions.Key, events []int64) ([]sessions.Media, error)
	Pictures(ctx context.Context, key sessions.Key, ids []string) (map[string]sessions.Picture, error)
	Pages(ctx context.Context, key sessions.Key, id string, from, through int) ([]sessions.MediaPage, error)
}

// Kept are the files that a session keeps.
type Kept interface {
	Files(ctx context.Context, key sessions.Key) ([]sessions.KeptFile, error)
}

// Parts are the stores that the tools use.
type Parts struct {
	Facts   Facts
	Search  memory.Searcher
	Digests Digests
	Blobs   Blobs
	Files   Files
	Kept    Kept
}
