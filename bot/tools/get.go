package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ebb/bot"
	"ebb/memory"
	"ebb/sessions"
)

type getArgs struct {
	Path  string `json:"path"`
	From  int    `json:"from"`
	Lines int    `json:"lines"`
}

var getSpec = bot.ToolSpec{
	Name:        "memory_get",
	Description: "Read a path that memory_search or a tool result gave, or MEMORY.md for everything saved.",
	Schema: object([]string{"path"}, map[string]any{
		"path": field("string", "path of a hit"), "from": field("integer", "first line, from 1"), "lines": field("integer", "how many, default 50"),
	}),
}

// Blobs are the tool results that were moved out of a session's view.
type Blobs interface {
	// Blob reads one: sessions.ErrNotFound where the session has none at that address.
	Blob(ctx context.Context, key sessions.Key, blob string) (string, error)
}

type getter struct {
	store memory.Store
	blobs Blobs
	loc   *time.Location
}

func (g getter) call(ctx context.Context, in bot.ToolInput, a getArgs) (string, error) {
	if blob, ok := sessions.BlobAt(a.Path); ok {
		return g.blob(ctx, in.Reader.Key, blob, a)
	}
	text, err := memory.Get(ctx, g.store, in.Reader, a.Path, a.From, a.Lines, g.loc)
	if errors.Is(err, memory.ErrUnreadable) {
		err = trouble(ctx, err, "memory_get: the memory can't be read at the moment")
	}
	return text, err
}

// blobLine is where the lines of a stored result are broken, in characters: some have none of their own.
const blobLine = 200

// blob reads lines of a stored result. Only the session's own are found, whatever path the model writes.
func (g getter) blob(ctx context.Context, key sessions.Key, blob string, a getArgs) (string, error) {
	text, err := g.blobs.Blob(ctx, key, blob)
	if errors.Is(err, sessions.ErrNotFound) {
		return sessions.Unavailable(blob) + " Run the tool again where its result still matters.", nil
	}
	if err != nil {
		return "", trouble(ctx, fmt.Errorf("read stored result: %w", err), "memory_get: the result can't be read at the moment")
	}
	lines := broken(text)
	first := min(max(1, a.From), len(lines))
	count := a.Lines
	if count <= 0 {
		count = memory.DefaultLines
	}
	last := min(len(lines), first-1+min(count, memory.MaxLines))
	return fmt.Sprintf("lines %d-%d of %d\n%s", first, last, len(lines), strings.Join(lines[first-1:last], "\n")), nil
}

// broken splits a text into lines of at most blobLine characters.
func broken(text string) []string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		for rs := []rune(line); ; rs = rs[blobLine:] {
			if len(rs) <= blobLine {
				out = append(out, string(rs))
				break
			}
			out = append(out, string(rs[:blobLine]))
		}
	}
	return out
}
