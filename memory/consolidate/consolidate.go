// Package consolidate replaces the oldest facts of an overfull scope by fewer ones.
package consolidate

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template"
	"unicode"

	"ebb/memory"
	"ebb/memory/draft"
	"ebb/memory/text"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// Store has the facts of a scope. See [memory.Upkeep].
type Store interface {
	Oldest(ctx context.Context, p memory.FactGroup, limit int) ([]memory.Memory, error)
	Consolidate(ctx context.Context, old []memory.Memory, drafts []memory.Draft) (memory.Receipt, error)
}

// Consolidator replaces the oldest facts of a group by fewer ones.
type Consolidator struct {
	Store    Store
	Model    llm.Model
	Name     string // a configured model; empty for the default
	Fence    memory.Fencer
	Count    func(text string) int // tokens
	Language string                // zh or en
	Context  int                   // the window, in tokens
}

// ErrLossy says that the new facts lack a number, a name or most of an old fact. The old facts stay.
var ErrLossy = errors.New("the consolidated facts lack something that the old ones name")

const (
	batch      = 40 // facts a call
	fewest     = 2  // a group of many people has few about each
	keptShare  = 2  // at most one of this number remains
	answerRoom = 4096
)

//go:embed consolidate.md
var consolidateText string

var consolidateTemplate = template.Must(template.New("consolidate.md").Parse(consolidateText))

// Consolidation is the outcome of one call.
type Consolidation struct {
	Receipt memory.Receipt
	Old     int // replaced facts; 0: there was nothing to do
	Usage   sessions.Usage
	Cost    float64
	Model   string // used the tokens
}

// Run consolidates a group once. An error leaves all memories as they were.
func (c *Consolidator) Run(ctx context.Context, p memory.FactGroup) (done Consolidation, err error) {
	old, err := c.Store.Oldest(ctx, p, batch)
	if err != nil {
		return done, fmt.Errorf("read the oldest facts of a %s: %w", p.Scope, err)
	}
	old = c.fitRequest(old)
	if len(old) < fewest {
		return done, nil
	}
	request, err := c.buildRequest(old)
	if err != nil {
		return done, err
	}
	called, err := c.Model.Generate(ctx, request)
	done.Usage, done.Cost, done.Model = called.Usage, called.Cost, called.UsedModel()
	if err != nil {
		return done, fmt.Errorf("consolidate facts of a %s: %w", p.Scope, err)
	}
	drafts, err := parseDrafts(old, called)
	if err != nil {
		return done, fmt.Errorf("consolidate facts of a %s: %w", p.Scope, err)
	}
	if done.Receipt, err = c.Store.Consolidate(ctx, old, drafts); err != nil {
		return done, fmt.Errorf("store consolidated facts of a %s: %w", p.Scope, err)
	}
	done.Old = len(old)
	return done, nil
}

func (c *Consolidator) fitRequest(old []memory.Memory) []memory.Memory {
	room := c.Context/2 - answerRoom/2
	for i, m := range old {
		if room -= c.Count(m.Content) + 16; room < 0 {
			return old[:i]
		}
	}
	return old
}

func (c *Consolidator) buildRequest(old []memory.Memory) (llm.Request, error) {
	var sys, data strings.Builder
	if err := consolidateTemplate.Execute(&sys, map[string]any{
		"Chinese": c.Language != "en", "Count": len(old), "Max": min(draft.MaxFacts, len(old)/keptShare),
	}); err != nil {
		return llm.Request{}, fmt.Errorf("write consolidation prompt: %w", err)
	}
	for _, m := range old {
		data.WriteString("- " + m.Content + "\n")
	}
	return llm.Request{
		Kind: llm.KindConsolidation, Model: c.Name, Messages: llm.Prompt(sys.String(), c.Fence("facts", data.String())),
		Force: draft.SaveTool, Tools: []llm.ToolSpec{draft.SaveSpec()}, MaxOutput: min(answerRoom, c.Context/4),
	}, nil
}

// The model does not decide scope and subject.
func parseDrafts(old []memory.Memory, answer llm.Response) ([]memory.Draft, error) {
	arguments := answer.Arguments(draft.SaveTool)
	if arguments == "" {
		return nil, draft.ErrNotSaved
	}
	save, rejected, err := draft.ParseSave(arguments)
	switch {
	case err != nil:
		return nil, err
	case len(rejected) > 0:
		return nil, fmt.Errorf("%w: %s", ErrLossy, strings.Join(rejected, "; "))
	case len(save.Facts) == 0 || len(save.Facts) >= len(old):
		return nil, fmt.Errorf("%d facts replace %d: %w", len(save.Facts), len(old), ErrLossy)
	}
	if err := checkComplete(old, save.Facts); err != nil {
		return nil, err
	}
	pattern, err := patternOf(old)
	if err != nil {
		return nil, err
	}
	drafts := make([]memory.Draft, len(save.Facts))
	for i, f := range save.Facts {
		// No key: another value of one thing must not take the rest out of force.
		drafts[i] = pattern
		drafts[i].Kind, drafts[i].Content = f.Kind, f.Content
	}
	return drafts, nil
}

func patternOf(old []memory.Memory) (memory.Draft, error) {
	first := old[0]
	d := memory.Draft{
		Scope: first.Scope, ScopeID: first.ScopeID, SubjectID: first.SubjectID, SaidBy: first.SaidBy, SourceGroup: first.SourceGroup,
		StartSeq: first.StartSeq, EndSeq: first.EndSeq,
	}
	for _, m := range old {
		if m.Scope != first.Scope || m.ScopeID != first.ScopeID || m.SourceGroup != first.SourceGroup ||
			m.SourceSession != first.SourceSession || m.SubjectID != first.SubjectID || m.SaidBy != first.SaidBy {
			return memory.Draft{}, fmt.Errorf("facts of several sources: %w", sessions.ErrRefused)
		}
		if m.SaidAt.After(d.SaidAt) {
			d.SaidAt = m.SaidAt
		}
		d.StartSeq, d.EndSeq = min(d.StartSeq, m.StartSeq), max(d.EndSeq, m.EndSeq)
	}
	return d, nil
}

// Every number and identifier, and half of each fact's terms must remain. The error is logged, so it names no content.
func checkComplete(old []memory.Memory, facts []memory.Fact) error {
	names, terms := map[string]bool{}, map[string]bool{}
	for _, f := range facts {
		for _, name := range exactNames(f.Content) {
			names[name] = true
		}
		for t := range text.Terms(text.Tokenize(f.Content)) {
			terms[t] = true
		}
	}
	for _, m := range old {
		for _, name := range exactNames(m.Content) {
			if !names[name] {
				return fmt.Errorf("fact %d: %w", m.ID, ErrLossy)
			}
		}
		said, held := text.Terms(text.Tokenize(m.Content)), 0
		for t := range said {
			if terms[t] {
				held++
			}
		}
		if 2*held < len(said) {
			return fmt.Errorf("fact %d: %w", m.ID, ErrLossy)
		}
	}
	return nil
}

// Names have a digit or mark inside, or capitals.
func exactNames(body string) []string {
	var out []string
	for _, t := range text.Tokenize(body) {
		if text.HasDigit(t) || strings.ContainsAny(t, "-_./@:") {
			out = append(out, t)
		}
	}
	for _, w := range strings.FieldsFunc(body, func(r rune) bool { return !text.IsLatin(r) }) {
		if len(w) >= 2 && w == strings.ToUpper(w) && strings.ContainsFunc(w, unicode.IsUpper) {
			out = append(out, text.Stem(text.Fold(w)))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
