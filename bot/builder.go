package bot

import (
	"bytes"
	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/memory"
	"ebb/sessions"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"
)

// viewConfig is what a [Builder] needs.
type viewConfig struct {
	Store   sessions.Store
	Memory  memory.Store
	Counter *tokens.Counter
	Now     func() time.Time // the storage's clock
	Tools   []Tool           // offered in every request

	Name     string // how the bot calls itself
	Prompt   string // further instructions for the model
	Language string // zh or en
	Location *time.Location
	// Compaction says how conversations are compacted, Groups how single ones are instead.
	Compaction    compaction.Settings
	Groups        map[sessions.ConversationID]compaction.Settings
	Own           Own // resolves what a conversation keeps of its own; nil: nothing
	Remember      Remember
	CommitTimeout time.Duration // of one statement
}

// Builder builds requests: it decides what a view shows, measures it, and assembles it.
type Builder struct {
	cfg      viewConfig
	store    sessions.Store
	memory   memory.Store
	counter  *tokens.Counter
	counted  *counted
	frame    *frame
	resolved resolved
	now      func() time.Time
}

//go:embed prompts/system.md
var systemPrompt string

// newBuilder writes what all requests have in common, once.
func newBuilder(cfg viewConfig) (*Builder, error) {
	b := &Builder{
		cfg: cfg, store: cfg.Store, memory: cfg.Memory, counter: cfg.Counter, now: cfg.Now,
		counted: &counted{counter: cfg.Counter, known: map[string]int{}},
	}
	if err := b.makeFrame(); err != nil {
		return nil, err
	}
	return b, nil
}

// makeFrame writes the system prompt and sorts the tools, once: they are the same in every request.
func (b *Builder) makeFrame() error {
	t, err := template.New("system.md").Parse(systemPrompt)
	if err != nil {
		return fmt.Errorf("read system prompt: %w", err)
	}
	var sys bytes.Buffer
	if err := t.Execute(&sys, map[string]any{"Chinese": b.cfg.Language != "en", "Name": b.cfg.Name, "Extra": b.cfg.Prompt}); err != nil {
		return fmt.Errorf("write system prompt: %w", err)
	}
	f := &frame{name: b.cfg.Name, system: strings.TrimSpace(sys.String()), order: b.cfg.Remember.Order, loc: b.cfg.Location}
	if len(f.order) == 0 {
		f.order = DefaultOrder()
	}
	if err := f.order.Check(); err != nil {
		return fmt.Errorf("order of a request: %w", err)
	}
	f.tokens = b.counter.Count(f.system) + tokens.MessageOverhead
	for _, tool := range b.cfg.Tools {
		spec := tool.Spec()
		schema, err := json.Marshal(spec)
		if err != nil {
			return fmt.Errorf("schema of tool %s: %w", spec.Name, err)
		}
		f.tokens += b.counter.Count(string(schema))
		f.tools = append(f.tools, spec)
	}
	slices.SortFunc(f.tools, func(x, y ToolSpec) int { return strings.Compare(x.Name, y.Name) })
	b.frame = f
	return nil
}
