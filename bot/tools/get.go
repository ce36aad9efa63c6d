package tools

import (
	"context"
	"errors"
	"time"

	"ebb/bot"
	"ebb/memory"
)

type getArgs struct {
	Path  string `json:"path"`
	From  int    `json:"from"`
	Lines int    `json:"lines"`
}

var getSpec = bot.ToolSpec{
	Name:        "memory_get",
	Description: "Read a path that memory_search gave, or MEMORY.md for everything saved.",
	Schema: object([]string{"path"}, map[string]any{
		"path": field("string", "path of a hit"), "from": field("integer", "first line, from 1"), "lines": field("integer", "how many, default 50"),
	}),
}

type getter struct {
	store memory.Store
	loc   *time.Location
}

func (g getter) call(ctx context.Context, in bot.ToolInput, a getArgs) (string, error) {
	text, err := memory.Get(ctx, g.store, in.Reader, a.Path, a.From, a.Lines, g.loc)
	if errors.Is(err, memory.ErrUnreadable) {
		err = trouble(ctx, err, "memory_get: the memory can't be read at the moment")
	}
	return text, err
}
