// Package tools holds the built-in tools: saving and finding memory, and reading the log. They stay inside the scopes
// of the calling chat; arguments never widen them.
package tools

import (
	"context"
	"encoding/json"
	"time"

	"ebb/bot/chat"
	"ebb/memory"
	"ebb/memory/draft"
	"ebb/sessions"
)

// Names lists the built-in tools.
func Names() (names []string) {
	for _, t := range append(All(Parts{}, nil), Remind(nil), Finder(nil)) {
		names = append(names, t.Spec().Name)
	}
	return names
}

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

// All returns the built-in tools. Times are shown in loc.
func All(p Parts, loc *time.Location) []chat.Tool {
	return []chat.Tool{
		tool[json.RawMessage]{ // ParseSave reads the items one by one: a bad one does not spoil the others
			spec: draft.TurnSaveSpec(),
			call: (saver{p.Facts, loc}).call,
		},
		tool[searchArgs]{spec: searchSpec, call: (searcher{p, loc}).call, reads: true},
		tool[getArgs]{spec: getSpec, call: (getter{p, loc}).call, reads: true},
		tool[historyArgs]{spec: historySpec, call: (historian{p, loc}).call, reads: true},
	}
}
