package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"ebb/sessions"
)

// part is a request that reads a beginning of the events to come.
type part struct {
	CallRequest
	events []sessions.Event
	all    []sessions.Event // the events to come
	known  string           // fenced: what is stored already
	told   int              // tokens of the transcript
}

// The parts of a request besides the transcript.
const (
	// estimateMargin is what our counts may be off by.
	estimateMargin = 1.2
	// requestFrame is what a request takes besides its texts, in tokens.
	requestFrame = 128
	// maxAnswer is the output that is asked for, in tokens: facts are short, but a model that thinks aloud needs room, and
	// with less some answers come back empty.
	maxAnswer = 8192
)

// part is the first request for events: what is known already is read, and the rest is sized by what has room.
func (r *reading) part(ctx context.Context, events []sessions.Event) (part, error) {
	known, err := r.Store.Pinned(ctx, ReaderOf(ChatOf(r.due.Session, events)), knownShown)
	if err != nil {
		return part{}, fmt.Errorf("read known facts: %w", err)
	}
	var sys strings.Builder
	if err := promptTemplate.Execute(&sys, map[string]any{"Chinese": r.Language != "en", "Max": MaxFacts}); err != nil {
		return part{}, fmt.Errorf("write flush prompt: %w", err)
	}
	p := part{all: events, known: r.knownFacts(known)}
	p.CallRequest = CallRequest{System: sys.String(), Tool: SaveTool, Description: SaveDescription, Schema: SaveSchema()}
	return r.sized(p), nil
}

// knownFacts sets what is known between fences, the newest first, as far as an eighth of the window goes.
func (r *reading) knownFacts(known []Memory) string {
	var b strings.Builder
	room := r.Context / 8
	for _, m := range known {
		line := "- " + m.Content + "\n"
		if room -= r.Count(line); room < 0 {
			break
		}
		b.WriteString(line)
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n\n" + r.Fence("known", b.String())
}

// sized is p with as many of its events as there is room for, at most the reading's limit, and with at least a quarter
// of the window for the answer. Input and MaxOutput together fit into the window.
func (r *reading) sized(p part) part {
	schema, _ := json.Marshal(p.Schema) // of maps, strings and integers: there is no way to fail
	fixed := r.Count(p.System) + r.Count(p.Description+string(schema)) + r.Count(p.known) + requestFrame
	room := int(float64(r.Context-fixed-min(maxAnswer, r.Context/4)) / estimateMargin)
	text, n := r.Render(p.all, min(r.limit, room))
	p.Model, p.events, p.told, p.User = r.model, p.all[:n], r.Count(text), text+p.known
	p.MaxOutput = max(1, min(maxAnswer, r.Context-fixed-p.told))
	return p
}

// maxHalved is how often parts are halved because the model finds them too long.
const maxHalved = 4

// halve puts about half of the part in p's place, and reports whether there is a smaller one: the same bytes would
// overflow for ever.
func (r *reading) halve(p *part) bool {
	if r.halved >= maxHalved {
		return false
	}
	before := p.told
	r.halved, r.limit = r.halved+1, before/2
	*p = r.sized(*p)
	return p.told < before
}
