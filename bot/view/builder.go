package view

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"ebb/bot/chat"
	"ebb/bot/llm"
	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/memory"
	"ebb/sessions"
)

// Config is what a [Builder] needs.
type Config struct {
	Store   sessions.Store
	Memory  memory.Store
	Counter *tokens.Counter
	Now     func() time.Time // the storage's clock
	Tools   []chat.Tool      // offered in every request
	// Commands recognizes commands, which are no part of a conversation.
	Commands interface{ IsCommand(text string) bool }

	Name     string // the bot's name
	Prompt   string // further instructions for the model
	Language string // zh or en
	Location *time.Location
	// Compaction holds the common settings, Groups those of single conversations.
	Compaction    compaction.Settings
	Groups        map[sessions.ConversationID]compaction.Settings
	Models        []llm.Listed // that a conversation may choose, the default first
	Own           Own          // resolves a conversation's own settings; nil: none
	Remember      Remember
	CommitTimeout time.Duration // timeout of one statement
}

// Builder builds requests: it decides what a view shows, measures it, and assembles it.
type Builder struct {
	cfg      Config
	store    sessions.Store
	memory   memory.Store
	counter  *tokens.Counter
	Counted  *TokenCache
	Frame    *Frame
	resolved resolved
	now      func() time.Time
}

//go:embed prompts/system.md
var systemPrompt string

// New returns a Builder with the common part of all requests rendered. It fails on an invalid order or tool schema.
func New(cfg Config) (*Builder, error) {
	b := &Builder{
		cfg: cfg, store: cfg.Store, memory: cfg.Memory, counter: cfg.Counter, now: cfg.Now,
		Counted: newTokenCache(cfg.Counter), resolved: newResolved(),
	}
	if err := b.makeFrame(); err != nil {
		return nil, err
	}
	return b, nil
}

// makeFrame renders the system prompt and sorts the tools.
func (b *Builder) makeFrame() error {
	t, err := template.New("system.md").Parse(systemPrompt)
	if err != nil {
		return fmt.Errorf("read system prompt: %w", err)
	}
	var sys bytes.Buffer
	if err := t.Execute(&sys, map[string]any{"Chinese": b.cfg.Language != "en", "Name": b.cfg.Name, "Extra": b.cfg.Prompt}); err != nil {
		return fmt.Errorf("write system prompt: %w", err)
	}
	f := &Frame{name: b.cfg.Name, System: strings.TrimSpace(sys.String()), Order: b.cfg.Remember.Order, Loc: b.cfg.Location}
	if len(f.Order) == 0 {
		f.Order = DefaultOrder()
	}
	if err := f.Order.Check(); err != nil {
		return fmt.Errorf("order of a request: %w", err)
	}
	f.Tokens = b.counter.Count(f.System) + tokens.MessageOverhead
	for _, tool := range b.cfg.Tools {
		spec := tool.Spec()
		schema, err := json.Marshal(spec)
		if err != nil {
			return fmt.Errorf("schema of tool %s: %w", spec.Name, err)
		}
		f.Tokens += b.counter.Count(string(schema))
		f.Tools = append(f.Tools, spec)
	}
	slices.SortFunc(f.Tools, func(x, y llm.ToolSpec) int { return strings.Compare(x.Name, y.Name) })
	b.Frame = f
	return nil
}
