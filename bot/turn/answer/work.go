package answer

import (
	"slices"
	"time"

	"ebb/sessions/llm"
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
