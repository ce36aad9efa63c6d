package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ebb/bot/chat"
	"ebb/memory"
	"ebb/memory/show"
	"ebb/sessions/llm"
)

type searchArgs struct {
	Query string `json:"query"`
	Limit int    `json:"limit"`
}

var searchSpec = llm.ToolSpec{
	Name:        "memory_search",
	Description: "Find memories and earlier messages by words, before answering about the past.",
	Schema: object([]string{"query"}, map[string]any{
		"query": plain("string"),
	}),
}

type searcher struct {
	from Parts
	loc  *time.Location
}

// Minimum size of a find: characters of content, and bytes for path, time and speaker.
const (
	leastFind = 40
	findFrame = 120
)

// call fits the finds into the room of a result. An answer without finds asks the model to admit it: models invent a fact otherwise.
func (s searcher) call(ctx context.Context, in chat.ToolInput, a searchArgs) (string, error) {
	if strings.TrimSpace(a.Query) == "" {
		return "", errors.New("query is empty: give words to look for")
	}
	if a.Limit < 1 || a.Limit > 20 {
		a.Limit = 8
	}
	q := memory.Query{Text: a.Query, Limit: a.Limit}
	if in.Room > 0 { // for one find, with its head; a character takes at most four bytes
		q.Chars = max(leastFind, (in.Room/a.Limit-findFrame)/4)
	}
	hits, err := readBy(in, s.from).Search(ctx, in.Reader, q)
	if err != nil {
		return "", storeFault(ctx, err, "memory_search: the memory can't be read at the moment")
	}
	if len(hits) == 0 {
		return fmt.Sprintf("没有找到 / nothing found for %q. Try other words once; else say that nothing was found, and do not guess.", memory.HeadOf(a.Query)), nil
	}
	var b strings.Builder
	for _, h := range hits {
		if rs := []rune(h.Content); q.Chars > 0 && len(rs) > q.Chars+1 { // its path reads the whole
			h.Content = string(rs[:q.Chars]) + "…"
		}
		b.WriteString(show.HitLine(h, s.loc))
	}
	return b.String(), nil
}
