package extract

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"ebb/memory"
	"ebb/memory/draft"
	"ebb/sessions"
	"ebb/sessions/llm"
)

const (
	// Our token counts may be wrong by this factor.
	estimateMargin = 1.2
	// requestFrame is the rest of a request in tokens.
	requestFrame = 128
	// maxAnswer is the requested output in tokens: with less, a model that thinks aloud may answer nothing.
	maxAnswer = 8192
)

//go:embed flush.md
var promptText string

var promptTemplate = template.Must(template.New("flush.md").Parse(promptText))

func (r *flushRun) nextPart(ctx context.Context) (flushPart, error) {
	var known []memory.Memory
	if !r.bare {
		nearest, err := r.searchKnown(ctx, r.reader(), r.queue)
		if err != nil {
			return flushPart{}, fmt.Errorf("read known facts: %w: %w", ErrStorage, err)
		}
		known = append(slices.Clone(r.fresh), nearest...)
	}
	var sys strings.Builder
	if err := promptTemplate.Execute(&sys, map[string]any{"Chinese": r.flusher.Language != "en", "Max": draft.MaxFacts}); err != nil {
		return flushPart{}, fmt.Errorf("write flush prompt: %w", err)
	}
	p := flushPart{known: r.knownFacts(known)}
	p.request = llm.Request{
		Kind: r.flusher.Kind, Messages: llm.Prompt(sys.String(), ""), Force: draft.SaveTool, Tools: []llm.ToolSpec{draft.SaveSpec()},
	}
	return r.fitPart(p), nil
}

func (r *flushRun) reader() memory.Reader {
	chat := draft.ChatOf(r.due.Session, r.page)
	chat.Reads = r.flusher.Reads
	return draft.ReaderOf(chat)
}

// Known memories are shown so that the model saves new facts only.
const knownShown = 30

// queryLength is the number of people's last characters by which known facts are searched.
const queryLength = 2000

// The closest facts come first, then the newest.
func (r *flushRun) searchKnown(ctx context.Context, reader memory.Reader, events []sessions.Event) ([]memory.Memory, error) {
	var words []string
	room := queryLength
	for _, e := range slices.Backward(events) {
		if e.Role != sessions.RoleUser {
			continue
		}
		mine, _ := draft.OwnWords(e)
		text := []rune(mine)
		if len(text) > room {
			text = text[:room]
		}
		if room -= len(text); len(text) > 0 {
			words = append(words, string(text))
		}
		if room <= 0 {
			break
		}
	}
	hits, err := r.flusher.Log.Search(ctx, reader, memory.Query{Text: strings.Join(words, "\n"), Limit: knownShown, From: memory.FromMemories})
	if err != nil {
		return nil, err
	}
	pinned, err := r.flusher.Facts.Pinned(ctx, reader, knownShown)
	if err != nil {
		return nil, err
	}
	var known []memory.Memory
	seen := map[int64]bool{}
	add := func(m memory.Memory) {
		if m.ID != 0 && !seen[m.ID] && len(known) < knownShown {
			seen[m.ID] = true
			known = append(known, m)
		}
	}
	for _, h := range hits {
		add(memory.Memory{ID: h.MemoryID, Content: h.Content})
	}
	for _, m := range pinned {
		add(m)
	}
	return known, nil
}

// knownFacts fill at most an eighth of the window. They stand after the transcript, so that old facts never displace new ones.
func (r *flushRun) knownFacts(known []memory.Memory) string {
	var b strings.Builder
	room := r.flusher.Context / 8
	for _, m := range known {
		line := fmt.Sprintf("- [#%d] %s\n", m.ID, m.Content)
		if m.ID == 0 {
			line = "- " + m.Content + "\n"
		}
		if room -= r.flusher.Count(line); room < 0 {
			break
		}
		b.WriteString(line)
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n\n" + r.flusher.Fence("known", b.String())
}

// fitPart adds events within span and limit. The answer gets at least a quarter of the window, and input and output
// together fit into it.
func (r *flushRun) fitPart(p flushPart) flushPart {
	tool := p.request.Tools[0]
	schema, _ := json.Marshal(tool.Schema) // maps, strings and integers can't fail
	fixed := r.flusher.Count(p.request.Messages[0].Content) + r.flusher.Count(tool.Description+string(schema)) + r.flusher.Count(p.known) + requestFrame
	room := int(float64(r.flusher.Context-fixed-min(maxAnswer, r.flusher.Context/4)) / estimateMargin)
	limit := min(r.limit, room)
	r.cutFirst(limit)
	all := r.queue
	if r.span > 0 && r.span < len(all) {
		all = all[:r.span]
	}
	text, n := r.flusher.Render(all, limit)
	p.events, p.transcriptTokens = all[:n], r.flusher.Count(text)
	p.request.Model = r.model
	p.setData(text + p.known)
	p.request.MaxOutput = max(1, min(maxAnswer, r.flusher.Context-fixed-p.transcriptTokens))
	return p
}

// The messages of an earlier request stay as they were sent.
func (p *flushPart) setData(data string) {
	p.request.Messages = llm.Prompt(p.request.Messages[0].Content, data)
}

const maxHalved = 4

// An unchanged request would overflow forever.
func (r *flushRun) halvePart(p *flushPart) bool {
	if r.halved >= maxHalved {
		return false
	}
	before := p.transcriptTokens
	r.halved, r.limit = r.halved+1, before/2
	*p = r.fitPart(*p)
	return p.transcriptTokens < before
}
