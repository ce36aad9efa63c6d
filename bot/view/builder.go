package view

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"text/template"

	lru "github.com/hashicorp/golang-lru/v2"

	"ebb/bot/chat"
	"ebb/bot/parts"
	"ebb/bot/reload"
	"ebb/compaction/tokens"
	"ebb/memory"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// Commands recognizes commands, which are no part of a conversation. Kept returns the words of a command that stay its
// sender's words, such as the text of a reminder.
type Commands interface {
	IsCommand(text string) bool
	Kept(text string) string
	Words(text string) string
	IsYesOrNo(text string) bool
}

// Quotes finds quoted messages, and stores what was found. See [sessions.Turns].
type Quotes interface {
	Quoted(ctx context.Context, key sessions.Key, q sessions.Quote) (sessions.Event, error)
	Requote(ctx context.Context, l sessions.Lease, event int64, content string, q sessions.Quote) error
}

// Facts lists the facts that a reader may see. See [memory.Facts].
type Facts interface {
	Pinned(ctx context.Context, r memory.Reader, limit int) ([]memory.Memory, error)
	Values(ctx context.Context, r memory.Reader, id int64) ([]memory.Memory, error)
}

// Options are the settings of a [Builder].
type Options struct {
	Tools   []chat.Tool  // offered in every request
	Outside chat.Toolbox // offered besides, by conversation
	// SchemaTokens bounds the schemas of Outside in a request. The tools beyond it are found by the tool that Finder makes of them.
	SchemaTokens int
	Finder       func(others []llm.ToolSpec) chat.Tool // nil: tools beyond the bound are not found
	Name         string
	Prompt       string // further instructions for the model
	Remember     Remember
}

// Builder decides what a view shows, measures it, and assembles requests.
type Builder struct {
	shared   *parts.Shared
	quotes   Quotes
	facts    Facts
	commands Commands
	opts     Options
	Counted  *TokenCache
	Frame    *Frame                       // for conversations without own settings
	frames   *lru.Cache[frameKey, *Frame] // for others; the id is empty in a frame without own settings
	resolved resolved
}

//go:embed prompts/system.md
var systemPrompt string

// New fails on an invalid order or tool schema.
func New(p *parts.Shared, quotes Quotes, facts Facts, commands Commands, o Options) (*Builder, error) {
	b := &Builder{shared: p, quotes: quotes, facts: facts, commands: commands, opts: o, Counted: newTokenCache(p.Counter), resolved: newResolved()}
	b.frames, _ = lru.New[frameKey, *Frame](maxFrames) // it fails only without a size
	var err error
	b.Frame, err = b.newFrame(o.Name, reload.Group{}, nil, nil, 0)
	return b, err
}

// Remember is how much memory a conversation shows.
func (b *Builder) Remember() Remember { return b.opts.Remember }

type frameKey struct {
	file    *reload.Values
	id      sessions.ConversationID
	outside int64 // version of the tools of other programs
	room    int   // their bound in tokens
}

const maxFrames = 1000

// FrameOf returns the frame of the session's conversation.
func (b *Builder) FrameOf(s sessions.Session) *Frame {
	file := b.shared.Current.For(s.Key)
	g, ok := file.Group(s.ConversationID)
	key := frameKey{file: file, id: s.ConversationID, outside: b.opts.Outside.Version()}
	outside := b.opts.Outside.Tools(s.ConversationID, s.ConversationType)
	if len(outside) > 0 {
		key.room = BodyLimit(b.Settings(s).Window.Usable())
	}
	switch {
	case !ok && len(file.Withheld) == 0 && len(outside) == 0 && !file.HasOwnFrame():
		return b.Frame
	case !ok && len(outside) == 0:
		key.id = ""
	}
	if f, known := b.frames.Get(key); known {
		return f
	}
	f, err := b.newFrame(cmp.Or(file.Name, b.opts.Name), g, file.Withheld, outside, key.room)
	if err != nil {
		return b.Frame // never: it has all the parts that can fail
	}
	b.frames.Add(key, f)
	return f
}

// newFrame offers tools of other programs within their bound, and the search for those beyond it: a server with endless schemas costs its own
// tools, and not the conversation. A small window has the same search with fewer tools.
func (b *Builder) newFrame(name string, g reload.Group, withheld []string, outside []chat.Tool, room int) (*Frame, error) {
	isOffered := func(name string) bool {
		return !slices.Contains(withheld, name) && (len(g.Tools) == 0 || slices.Contains(g.Tools, name) || slices.Contains(g.Tools, chat.ServerOf(name)))
	}
	f := &Frame{name: name, Loc: b.shared.Location, byName: map[string]chat.Tool{}, room: room}
	for _, tool := range b.opts.Tools {
		one, err := measure(b.shared.Counter, tool)
		if err != nil {
			return nil, err
		}
		if isOffered(one.spec.Name) {
			f.add(tool, one)
		}
	}
	if err := b.addOutside(f, slices.DeleteFunc(slices.Clone(outside), func(t chat.Tool) bool { return !isOffered(t.Spec().Name) })); err != nil {
		return nil, err
	}
	only := slices.DeleteFunc(slices.Sorted(slices.Values(g.Tools)), func(name string) bool { return !isOffered(name) })
	if len(only) > 0 && f.Offers(chat.SearchTool) && !slices.Contains(only, chat.SearchTool) {
		only = append(only, chat.SearchTool)
	}
	t, err := template.New("system.md").Parse(systemPrompt)
	if err != nil {
		return nil, fmt.Errorf("read system prompt: %w", err)
	}
	var sys bytes.Buffer
	if err := t.Execute(&sys, map[string]any{
		"Chinese": cmp.Or(g.Language, b.shared.Languages.Preset) != "en", "Fixed": g.Language != "", "Name": name,
		"Extra": cmp.Or(g.Prompt, b.opts.Prompt), "Only": strings.Join(only, ", "),
	}); err != nil {
		return nil, fmt.Errorf("write system prompt: %w", err)
	}
	f.System = strings.TrimSpace(sys.String())
	f.Tokens += b.shared.Counter.Count(f.System) + tokens.MessageOverhead
	slices.SortFunc(f.Tools, byToolName)
	return f, nil
}

// Outside has the tools of other programs.
func (b *Builder) Outside() chat.Toolbox { return b.opts.Outside }
