package memory

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"text/template"

	"ebb/sessions"
)

// Model makes a model call one tool. Its answer may still lack the call: that is for the caller to judge.
type Model interface {
	Call(ctx context.Context, r CallRequest) (Called, error)
}

// CallRequest is a request that must be answered by a call of Tool.
type CallRequest struct {
	Model       string // a configured model's name; empty for the default
	System      string
	User        string
	Tool        string
	Description string
	Schema      map[string]any
}

// Called is the answer. Arguments is empty where the model did not call the tool.
type Called struct {
	Arguments string
	Text      string
	Model     string
	Usage     sessions.Usage
	Cost      float64
}

// Render writes events as data for a model, between fences; see the compaction package's transcript.
type Render func(events []sessions.Event) string

// Fencer sets one piece of data between fences.
type Fencer func(name, data string) string

// Flusher draws facts out of the log.
type Flusher struct {
	Store    Store
	Model    Model
	Name     string // the configured model; empty for the default
	Render   Render
	Fence    Fencer
	Language string // zh or en
	Limit    int    // tokens of events that one call may read
}

// Due says which flush is to be made.
type Due struct {
	Session sessions.Session
	Lease   sessions.Lease
	Through int64
	// Epoch marks the cycle as flushed; the session's own FlushEpoch leaves that mark as it is, for flushes that do not
	// stand for the cycle's one.
	Epoch int
}

// Outcome is what a flush did.
type Outcome struct {
	Receipt Receipt
	Facts   []Draft
	Nothing bool // the model said so, or there was no event to read
	Through int64
	Calls   int
	Usage   sessions.Usage
	Cost    float64
}

// String is the outcome as the compaction log tells it.
func (o Outcome) String() string {
	switch {
	case o.Receipt.Rows() > 0:
		return fmt.Sprintf("saved %d, known %d", len(o.Receipt.Saved), len(o.Receipt.Duplicate))
	case o.Nothing:
		return "nothing to save"
	}
	return "none"
}

//go:embed flush.md
var promptText string

var promptTemplate = template.Must(template.New("flush.md").Parse(promptText))

// page is how many events are read from the log at a time.
const page = 500

// knownShown is how many known memories a flush shows the model, so that it saves what is new.
const knownShown = 30

// Flush extracts the facts of the events after the session's flush cursor, up to d.Through. Each part of the range
// commits on its own: after an error the cursor stands behind the last part that did.
func (f *Flusher) Flush(ctx context.Context, d Due) (Outcome, error) {
	out := Outcome{Nothing: true, Through: d.Session.FlushedSeq}
	for out.Through < d.Through {
		events, err := f.Store.Range(ctx, d.Session.Key, out.Through, d.Through, page)
		if err != nil {
			return out, fmt.Errorf("read events after %d of session %s: %w", out.Through, d.Session.Key, err)
		}
		if len(events) == 0 {
			return out, f.commit(ctx, d, &out, d.Through, nil, Called{})
		}
		events = f.part(events)
		through := events[len(events)-1].Seq
		drafts, called, err := f.extract(ctx, d, events, &out)
		if err != nil {
			return out, err
		}
		if err := f.commit(ctx, d, &out, through, drafts, called); err != nil {
			return out, err
		}
	}
	return out, nil
}

// part is the longest beginning of events that one call may read, at least one event.
func (f *Flusher) part(events []sessions.Event) []sessions.Event {
	n := 0
	for i, e := range events {
		if n += e.Tokens; n > f.Limit && i > 0 {
			return events[:i]
		}
	}
	return events
}

func (f *Flusher) commit(ctx context.Context, d Due, out *Outcome, through int64, drafts []Draft, c Called) error {
	epoch := d.Epoch
	if through < d.Through {
		epoch = d.Session.FlushEpoch // the cycle is flushed with its last part
	}
	r, err := f.Store.Flush(ctx, d.Lease, Flush{
		From: out.Through, Through: through, Epoch: epoch, Drafts: drafts, Usage: c.Usage, Model: c.Model,
	})
	if err != nil {
		return fmt.Errorf("store facts of events %d to %d of session %s: %w", out.Through+1, through, d.Session.Key, err)
	}
	out.Receipt.Saved = append(out.Receipt.Saved, r.Saved...)
	out.Receipt.Duplicate = append(out.Receipt.Duplicate, r.Duplicate...)
	out.Facts = append(out.Facts, drafts...)
	out.Nothing = out.Nothing && len(drafts) == 0
	out.Through = through
	return nil
}

// ErrNotSaved says that the model neither saved anything nor said that there is nothing to save.
var ErrNotSaved = errors.New("model did not call memory_save")

// extract asks for the facts of events. A model that answers in prose is asked once to put it into the tool.
func (f *Flusher) extract(ctx context.Context, d Due, events []sessions.Event, out *Outcome) ([]Draft, Called, error) {
	req, err := f.request(ctx, d, events)
	if err != nil {
		return nil, Called{}, err
	}
	for try := 0; ; try++ {
		c, err := f.Model.Call(ctx, req)
		out.Calls++
		out.Usage, out.Cost = out.Usage.Add(c.Usage), out.Cost+c.Cost
		if err != nil {
			return nil, c, fmt.Errorf("extract facts of session %s: %w", d.Session.Key, err)
		}
		save, _, err := ParseSave(c.Arguments)
		if err == nil {
			return f.route(d, events, save), c, nil
		}
		if c.Arguments == "" {
			err = ErrNotSaved
		}
		if try > 0 {
			return nil, c, fmt.Errorf("extract facts of session %s: %w", d.Session.Key, err)
		}
		if c.Text != "" {
			req.User = f.Fence("notes", c.Text)
		}
	}
}

func (f *Flusher) route(d Due, events []sessions.Event, s Save) []Draft {
	chat := ChatOf(d.Session, events)
	drafts := make([]Draft, len(s.Facts))
	for i, fact := range s.Facts {
		drafts[i] = Route(fact, chat)
	}
	return drafts
}

// ChatOf is where a session's facts are said, with those who speak in events.
func ChatOf(s sessions.Session, events []sessions.Event) Chat {
	c := Chat{Key: s.Key, Robot: s.RobotCode, Conversation: s.ConversationID, Roster: RosterOf(events)}
	c.Private = s.ConversationType == sessions.Private
	if c.Private {
		for _, e := range events {
			if e.Role == sessions.RoleUser {
				c.Person = e.SenderID
			}
		}
	}
	return c
}

func (f *Flusher) request(ctx context.Context, d Due, events []sessions.Event) (CallRequest, error) {
	known, err := f.Store.Pinned(ctx, ReaderOf(ChatOf(d.Session, events)), knownShown)
	if err != nil {
		return CallRequest{}, fmt.Errorf("read known facts of session %s: %w", d.Session.Key, err)
	}
	var sys strings.Builder
	if err := promptTemplate.Execute(&sys, map[string]any{"Chinese": f.Language != "en", "Max": MaxFacts}); err != nil {
		return CallRequest{}, fmt.Errorf("write flush prompt: %w", err)
	}
	user := f.Render(events)
	if len(known) > 0 {
		var b strings.Builder
		for _, m := range known {
			b.WriteString("- " + m.Content + "\n")
		}
		user += "\n\n" + f.Fence("known", b.String())
	}
	return CallRequest{Model: f.Name, System: sys.String(), User: user, Tool: SaveTool, Description: SaveDescription, Schema: SaveSchema()}, nil
}

// ReaderOf is who reads memory in a chat.
func ReaderOf(c Chat) Reader {
	r := Reader{Key: c.Key, Robot: c.Robot, Conversation: c.Conversation, Private: c.Private}
	if c.Private && c.Person != "" {
		r.Users = []sessions.UserID{c.Person}
	}
	return r
}
