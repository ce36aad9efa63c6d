package view

import (
	"bytes"
	"cmp"
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
	"ebb/sessions"
)

//go:embed prompts/system.md
var systemPrompt string

// Frames are the constant parts of the requests of conversations.
type Frames struct {
	shared  *parts.Shared
	choices Choices
	opts    Options
	Common  *Frame                       // for conversations without own settings
	known   *lru.Cache[frameKey, *Frame] // for others; the id is empty in a frame without own settings
}

func newFrames(p *parts.Shared, choices Choices, o Options) (Frames, error) {
	fs := Frames{shared: p, choices: choices, opts: o}
	fs.known, _ = lru.New[frameKey, *Frame](maxFrames) // it fails only without a size
	var err error
	fs.Common, err = fs.newFrame(o.Name, reload.Group{}, nil, nil, 0)
	return fs, err
}

type frameKey struct {
	file    *reload.Values
	id      sessions.ConversationID
	outside int64 // version of the tools of other programs
	room    int   // their bound in tokens
}

const maxFrames = 1000

// FrameOf returns the frame of the session's conversation.
func (fs Frames) FrameOf(s sessions.Session) *Frame {
	file := fs.shared.Current.For(s.Key)
	g, ok := file.Group(s.ConversationID)
	key := frameKey{file: file, id: s.ConversationID, outside: fs.opts.Outside.Version()}
	outside := fs.opts.Outside.Tools(s.ConversationID, s.ConversationType)
	if len(outside) > 0 {
		key.room = BodyLimit(fs.choices.Settings(s).Window.Usable())
	}
	switch {
	case !ok && len(file.Withheld) == 0 && len(outside) == 0 && !file.HasOwnFrame():
		return fs.Common
	case !ok && len(outside) == 0:
		key.id = ""
	}
	if f, known := fs.known.Get(key); known {
		return f
	}
	f, err := fs.newFrame(cmp.Or(file.Name, fs.opts.Name), g, file.Withheld, outside, key.room)
	if err != nil {
		return fs.Common // never: it has all the parts that can fail
	}
	fs.known.Add(key, f)
	return f
}

// newFrame offers tools of other programs within their bound, and the search for those beyond it: a server with endless schemas costs its own
// tools, and not the conversation. A small window has the same search with fewer tools.
func (fs Frames) newFrame(name string, g reload.Group, withheld []string, outside []chat.Tool, room int) (*Frame, error) {
	isOffered := func(name string) bool {
		return !slices.Contains(withheld, name) && (len(g.Tools) == 0 || slices.Contains(g.Tools, name) || slices.Contains(g.Tools, chat.ServerOf(name)))
	}
	f := &Frame{name: name, Loc: fs.shared.Location, byName: map[string]chat.Tool{}, room: room}
	for _, tool := range fs.opts.Tools {
		one, err := measure(fs.shared.Counter, tool)
		if err != nil {
			return nil, err
		}
		if isOffered(one.spec.Name) {
			f.add(tool, one)
		}
	}
	if err := f.addOutside(fs.shared.Counter, fs.opts, slices.DeleteFunc(slices.Clone(outside), func(t chat.Tool) bool { return !isOffered(t.Spec().Name) })); err != nil {
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
		"Chinese": cmp.Or(g.Language, fs.shared.Languages.Preset) != "en", "Fixed": g.Language != "", "Name": name,
		"Extra": cmp.Or(g.Prompt, fs.opts.Prompt), "Only": strings.Join(only, ", "),
	}); err != nil {
		return nil, fmt.Errorf("write system prompt: %w", err)
	}
	f.System = strings.TrimSpace(sys.String())
	f.Tokens += fs.shared.Counter.Count(f.System) + tokens.MessageOverhead
	slices.SortFunc(f.Tools, byToolName)
	return f, nil
}

// Outside has the tools of other programs.
func (fs Frames) Outside() chat.Toolbox { return fs.opts.Outside }
