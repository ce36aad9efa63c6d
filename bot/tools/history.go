package tools

import (
	"context"
	"slices"
	"time"

	"ebb/bot"
	"ebb/memory"
)

type historyArgs struct {
	Query  string `json:"query"`
	Before int64  `json:"before"`
	Limit  int    `json:"limit"`
}

var historySpec = bot.ToolSpec{
	Name:        "query_history",
	Description: "Read this conversation's original messages, also those that were compacted, newest first.",
	Schema: object(nil, map[string]any{
		"query": field("string", "words that must occur; empty for all"), "before": field("integer", "only messages before this number"),
		"limit": field("integer", "messages, 1 to 50, default 20"),
	}),
}

type historian struct {
	store memory.Store
	loc   *time.Location
}

func (h historian) call(ctx context.Context, in bot.ToolInput, a historyArgs) (string, error) {
	if a.Limit < 1 || a.Limit > 50 {
		a.Limit = 20
	}
	events, err := h.store.History(ctx, in.Lease.Key, a.Query, a.Before, a.Limit)
	if err != nil {
		return "", trouble(ctx, err, "query_history: the log can't be read at the moment")
	}
	slices.Reverse(events)
	return memory.EventLines(events, h.loc), nil
}
