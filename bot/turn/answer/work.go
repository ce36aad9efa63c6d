package answer

import (
	"slices"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/llm"
)

// Work is a turn's use of models and tools, for its log line.
type Work struct {
	requests int           // to all models, failed ones included
	first    time.Duration // latency of the first streamed answer's first token; 0 for none
	tools    []string      // that ran, in order
}

func (w *Work) add(parts []llm.Part) {
	for _, p := range parts {
		w.requests += p.Requests
		if w.first == 0 && p.Err == nil {
			w.first = p.FirstToken
		}
	}
}

// after adds the work before.
func (w Work) after(before Work) Work {
	w.requests, w.tools = before.requests+w.requests, slices.Concat(before.tools, w.tools)
	if before.first != 0 {
		w.first = before.first
	}
	return w
}

// MarshalZerologObject logs the model's share of a turn. A turn without requests has none.
func (a Answer) MarshalZerologObject(e *zerolog.Event) {
	if a.Work.requests == 0 {
		return
	}
	e.Str("model", a.Spent.Model).Int("requests", a.Work.requests).Int("tokens_in", a.Spent.Usage.Prompt).Int("tokens_cached", a.Spent.Usage.Cached).
		Int("tokens_out", a.Spent.Usage.Completion).Float64("cost", a.Spent.Cost)
	if len(a.Work.tools) > 0 {
		e.Strs("tools", a.Work.tools)
	}
	if a.Work.first > 0 {
		e.Dur("first_token_ms", a.Work.first)
	}
}
