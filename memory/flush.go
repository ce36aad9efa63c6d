package memory

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"text/template"
	"time"

	"ebb/sessions"
)

// Model makes a model call one tool. Its answer may still lack the call: that is for the caller to judge. An error may
// say by [Trouble] that the request was too long.
type Model interface {
	Call(ctx context.Context, r CallRequest) (Called, error)
}

// Trouble is an error of a model that says whether the request was larger than the model's window.
type Trouble interface {
	error
	Overflow() bool
}

// CallRequest is a request that must be answered by a call of Tool.
type CallRequest struct {
	Model       string // a configured model's name; empty for the default
	System      string
	User        string
	Tool        string
	Description string
	Schema      map[string]any
	MaxOutput   int // tokens
}

// Called is the answer. Arguments is empty where the model did not call the tool.
type Called struct {
	Arguments string
	Text      string
	Model     string
	Usage     sessions.Usage
	Cost      float64
}

// Render writes the longest beginning of events that takes at most limit tokens as data for a model, between fences,
// and says how many events that is: at least one, shortened where it alone is too long. See the compaction package's
// Scribe.
type Render func(events []sessions.Event, limit int) (text string, n int)

// Fencer sets one piece of data between fences.
type Fencer func(name, data string) string

// Flusher draws facts out of the log.
type Flusher struct {
	Store Store
	Model Model
	// Name is the configured model that reads; empty for the default one, the chat's. Where another is named and fails,
	// the chat's model is asked once.
	Name     string
	Render   Render
	Fence    Fencer
	Count    func(text string) int // tokens
	Language string                // zh or en
	Context  int                   // the window, in tokens
	// Location is the time zone that relative dates in facts are resolved in; nil: UTC.
	Location *time.Location
	// TaskTTL is how long the state of work is kept; 0: [DefaultTaskTTL].
	TaskTTL time.Duration
}

// Due says which flush is to be made.
type Due struct {
	Session sessions.Session
	Lease   sessions.Lease
	Through int64
	// Epoch marks the cycle as flushed; the session's own FlushEpoch leaves that mark as it is, for flushes that do not
	// stand for the cycle's one.
	Epoch int
	// Trigger is what asked for it, for the receipt: threshold, compaction, manual, new, idle, shutdown, debt, candidates.
	Trigger string
}

// Outcome is what a flush did.
type Outcome struct {
	Receipt Receipt
	Facts   []Draft
	Nothing bool // the model said so, or there was no event to read
	Through int64
	Calls   int
	Usage   sessions.Usage // of all calls
	Lost    sessions.Usage // of those that nothing was stored from
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
	r := &reading{Flusher: f, due: d, model: f.Name, limit: f.Context, out: Outcome{Nothing: true, Through: d.Session.FlushedSeq}}
	for r.out.Through < d.Through {
		events, err := f.Store.Range(ctx, d.Session.Key, r.out.Through, d.Through, page)
		if err != nil {
			return r.out, fmt.Errorf("read events after %d of session %s: %w", r.out.Through, d.Session.Key, err)
		}
		through, drafts, called := d.Through, []Draft(nil), Called{}
		if len(events) > 0 {
			if through, drafts, called, err = r.extract(ctx, events); err != nil {
				return r.out, fmt.Errorf("extract facts of session %s: %w", d.Session.Key, err)
			}
		}
		if err := r.commit(ctx, through, drafts, called); err != nil {
			return r.out, err
		}
	}
	return r.out, nil
}

// reading is one flush under way.
type reading struct {
	*Flusher
	due    Due
	model  string // that is asked
	limit  int    // tokens of a transcript; it shrinks when the model finds a request too long
	halved int    // how often it did
	out    Outcome
}

func (r *reading) commit(ctx context.Context, through int64, drafts []Draft, c Called) error {
	last := through >= r.due.Through
	epoch := r.due.Epoch
	if !last {
		epoch = r.due.Session.FlushEpoch // the cycle is flushed with its last part
	}
	key := r.due.Session.Key
	got, err := r.Store.Flush(ctx, r.due.Lease, Flush{
		From: r.out.Through, Through: through, Gen: r.due.Session.Gen, Epoch: epoch, Last: last, Trigger: r.due.Trigger,
		Drafts: drafts, Usage: c.Usage, Model: c.Model,
	})
	if err != nil {
		return fmt.Errorf("store facts of events %d to %d of session %s: %w", r.out.Through+1, through, key, err)
	}
	r.out.Receipt.Saved = append(r.out.Receipt.Saved, got.Saved...)
	r.out.Receipt.Duplicate = append(r.out.Receipt.Duplicate, got.Duplicate...)
	r.out.Facts = append(r.out.Facts, drafts...)
	r.out.Nothing = r.out.Nothing && len(drafts) == 0
	r.out.Through = through
	return nil
}

// ErrNotSaved says that the model neither saved anything nor said that there is nothing to save.
var ErrNotSaved = errors.New("model did not call memory_save")

// extract asks for the facts of a beginning of events, up to through. A model that answers in prose, or in arguments
// that are none, is asked once more; then, where flushes have a model of their own, the chat's is asked once, for this
// part and those to come.
func (r *reading) extract(ctx context.Context, events []sessions.Event) (through int64, drafts []Draft, c Called, err error) {
	p, err := r.part(ctx, events)
	if err != nil {
		return 0, nil, Called{}, err
	}
	var usage sessions.Usage
	defer func() {
		if err != nil {
			r.out.Lost = usage
		}
	}()
	for again := r.model == r.Name; ; {
		c, err = r.Model.Call(ctx, p.CallRequest)
		r.out.Calls++
		r.out.Usage, r.out.Cost = r.out.Usage.Add(c.Usage), r.out.Cost+c.Cost
		usage = usage.Add(c.Usage)
		c.Usage = usage // of all the calls that the part took
		answered := err == nil
		if answered {
			var save Save
			if save, err = saveOf(c); err == nil {
				return p.events[len(p.events)-1].Seq, r.route(p.events, save), c, nil
			}
		}
		trouble, known := errors.AsType[Trouble](err)
		switch {
		case ctx.Err() != nil:
			return 0, nil, c, err
		case answered && again:
			again = false
			if c.Text != "" { // what was found out already is asked for in the right form
				p.User = r.Fence("notes", c.Text)
			}
		case known && trouble.Overflow() && r.halve(&p):
		case r.model != "":
			r.model, r.limit, r.halved, again = "", r.Context, maxHalved, false
			p = r.sized(p)
		default:
			return 0, nil, c, err
		}
	}
}

// saveOf reads what a model answered. Where it wanted to save nothing but what is never kept, there is nothing to save.
func saveOf(c Called) (Save, error) {
	if c.Arguments == "" {
		return Save{}, ErrNotSaved
	}
	save, _, err := ParseSave(c.Arguments)
	if errors.Is(err, ErrUnfit) {
		return Save{Nothing: true}, nil
	}
	return save, err
}

// route decides what becomes of the facts that a model drew out of events. What it may not keep is left out.
func (r *reading) route(events []sessions.Event, s Save) []Draft {
	chat := ChatOf(r.due.Session, events)
	chat.Location, chat.TaskTTL = r.Location, r.TaskTTL
	drafts, _ := Route(s.Facts, chat)
	return drafts
}
