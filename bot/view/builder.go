package view

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/template"
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
	Groups   map[sessions.ConversationID]Group
	Language string // zh or en
	Location *time.Location
	// Compaction holds the common settings, Compactions those of single conversations.
	Compaction    compaction.Settings
	Compactions   map[sessions.ConversationID]compaction.Settings
	Models        []llm.Listed // that a conversation may choose, the default first
	Own           Own          // resolves a conversation's own settings; nil: none
	Remember      Remember
	CommitTimeout time.Duration // timeout of one statement
}

// Group has the settings of one conversation in place of the common ones. An empty field keeps the common one.
type Group struct {
	Scope    sessions.Scope // scope of the sessions, for accepted messages
	Language string         // zh or en: of fixed words, and of the model's answers
	Prompt   string
	Model    string
	Tools    []string // names of the offered tools
}

// Builder builds requests: it decides what a view shows, measures it, and assembles it.
type Builder struct {
	cfg      Config
	store    sessions.Store
	memory   memory.Store
	counter  *tokens.Counter
	Counted  *TokenCache
	Frame    *Frame // frame of conversations without settings of their own
	frames   map[sessions.ConversationID]*Frame
	resolved resolved
	now      func() time.Time
}

//go:embed prompts/system.md
var systemPrompt string

// New returns a Builder with the common part of all requests rendered. It fails on an invalid order or tool schema.
func New(cfg Config) (*Builder, error) {
	b := &Builder{
		cfg: cfg, store: cfg.Store, memory: cfg.Memory, counter: cfg.Counter, now: cfg.Now,
		Counted: newTokenCache(cfg.Counter), resolved: newResolved(), frames: map[sessions.ConversationID]*Frame{},
	}
	var err error
	if b.Frame, err = b.newFrame(Group{}); err != nil {
		return nil, err
	}
	for id, g := range cfg.Groups {
		if b.frames[id], err = b.newFrame(g); err != nil {
			return nil, fmt.Errorf("group %s: %w", id, err)
		}
	}
	return b, nil
}

// FrameOf returns the constant part of the requests of a conversation.
func (b *Builder) FrameOf(id sessions.ConversationID) *Frame {
	if f, ok := b.frames[id]; ok {
		return f
	}
	return b.Frame
}

// newFrame renders the system prompt and sorts the tools.
func (b *Builder) newFrame(g Group) (*Frame, error) {
	t, err := template.New("system.md").Parse(systemPrompt)
	if err != nil {
		return nil, fmt.Errorf("read system prompt: %w", err)
	}
	var sys bytes.Buffer
	if err := t.Execute(&sys, map[string]any{
		"Chinese": cmp.Or(g.Language, b.cfg.Language) != "en", "Fixed": g.Language != "", "Name": b.cfg.Name,
		"Extra": cmp.Or(g.Prompt, b.cfg.Prompt), "Only": strings.Join(slices.Sorted(slices.Values(g.Tools)), ", "),
	}); err != nil {
		return nil, fmt.Errorf("write system prompt: %w", err)
	}
	f := &Frame{name: b.cfg.Name, System: strings.TrimSpace(sys.String()), Order: b.cfg.Remember.Order, Loc: b.cfg.Location}
	if len(f.Order) == 0 {
		f.Order = DefaultOrder()
	}
	if err := f.Order.Check(); err != nil {
		return nil, fmt.Errorf("order of a request: %w", err)
	}
	f.Tokens = b.counter.Count(f.System) + tokens.MessageOverhead
	for _, tool := range b.cfg.Tools {
		spec := tool.Spec()
		if len(g.Tools) > 0 && !slices.Contains(g.Tools, spec.Name) {
			continue
		}
		schema, err := json.Marshal(spec)
		if err != nil {
			return nil, fmt.Errorf("schema of tool %s: %w", spec.Name, err)
		}
		f.Tokens += b.counter.Count(string(schema))
		f.Tools = append(f.Tools, spec)
	}
	slices.SortFunc(f.Tools, func(x, y llm.ToolSpec) int { return strings.Compare(x.Name, y.Name) })
	return f, nil
}
