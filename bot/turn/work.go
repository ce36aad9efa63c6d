package turn

import (
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/llm"
)

// work is a turn's use of models and tools, for its log line.
type work struct {
	requests int           // to all models, failed ones included
	first    time.Duration // latency of the first streamed answer's first token; 0 for none
	tools    []string      // that ran, in order
}

func (w *work) add(parts []llm.Part) {
	for _, p := range parts {
		w.requests += p.Requests
		if w.first == 0 && p.Err == nil {
			w.first = p.FirstToken
		}
	}
}

// used logs the model's share of a turn. A turn without requests has none.
type used struct {
	work
	answer
}

// MarshalZerologObject implements zerolog.LogObjectMarshaler.
func (u used) MarshalZerologObject(e *zerolog.Event) {
	if u.requests == 0 {
		return
	}
	e.Str("model", u.model).Int("requests", u.requests).Int("tokens_in", u.usage.Prompt).Int("tokens_cached", u.usage.Cached).
		Int("tokens_out", u.usage.Completion).Float64("cost", u.cost)
	if len(u.tools) > 0 {
		e.Strs("tools", u.tools)
	}
	if u.first > 0 {
		e.Dur("first_token_ms", u.first)
	}
}
