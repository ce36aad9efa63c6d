package view

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"ebb/bot/chat"
	"ebb/compaction/tokens"
	"ebb/sessions"
	"ebb/sessions/llm"
)

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

// Frame is the constant part of every request. It changes only with the configuration: provider prompt caches hold.
type Frame struct {
	name   string
	System string
	Tools  []llm.ToolSpec // sorted by name
	Tokens int            // size of System and Tools
	Loc    *time.Location
	byName map[string]chat.Tool
	others map[string]measured // tools of other programs that a search finds, see [Frame.Offer]
	bound  int                 // limit of the schemas of found tools in a request, in tokens
	room   int                 // limit of a single one
}

// Tool returns a tool that requests offer or a search finds, and nil for another name.
func (f *Frame) Tool(name string) chat.Tool { return f.byName[name] }

// Offers reports whether the conversation has a tool.
func (f *Frame) Offers(tool string) bool { return f.byName[tool] != nil }

// measured is a tool of another program with the size of its schema in tokens.
type measured struct {
	spec llm.ToolSpec
	size int
}

func byToolName(x, y llm.ToolSpec) int { return strings.Compare(x.Name, y.Name) }

func measure(counter *tokens.Counter, tool chat.Tool) (measured, error) {
	spec := tool.Spec()
	schema, err := json.Marshal(spec)
	if err != nil {
		return measured{}, fmt.Errorf("schema of tool %s: %w", spec.Name, err)
	}
	return measured{spec, counter.Count(string(schema))}, nil
}

// add offers a tool in each request.
func (f *Frame) add(tool chat.Tool, one measured) {
	f.Tokens += one.size
	f.Tools = append(f.Tools, one.spec)
	f.byName[one.spec.Name] = tool
}

// addOutside offers tools of other programs, in the order of their names, as far as their bound goes. The others can be found and called.
func (f *Frame) addOutside(counter *tokens.Counter, o Options, tools []chat.Tool) error {
	all, total := make([]measured, len(tools)), 0
	for i, tool := range tools {
		var err error
		if all[i], err = measure(counter, tool); err != nil {
			return err
		}
		total += all[i].size
	}
	f.bound = min(o.SchemaTokens, f.room)
	if total > f.bound {
		f.bound = min(f.bound, f.room/2) // the other half is for found ones
	}
	left := f.bound
	var others []llm.ToolSpec
	for i, tool := range tools {
		if all[i].size <= left {
			left -= all[i].size
			f.add(tool, all[i])
			continue
		}
		others = append(others, all[i].spec)
		if f.others == nil {
			f.others = map[string]measured{}
		}
		f.others[all[i].spec.Name] = all[i]
		f.byName[all[i].spec.Name] = tool
	}
	f.room -= f.bound - left
	if len(others) == 0 || o.Finder == nil {
		return nil
	}
	finder := o.Finder(others)
	one, err := measure(counter, finder)
	if err != nil {
		return err
	}
	f.add(finder, one)
	return nil
}

// Offer is the tools of a request.
type Offer struct {
	Tools  []llm.ToolSpec // sorted by name
	Tokens int            // size of those beyond the frame's
}

// Offer returns the tools of a request that shows events. Tools that a search found stay as long as the events show the search or a call. So
// the list changes with a search, and with a compaction, which ends the cached prefix of a prompt anyway. The newest come first where all
// do not fit.
func (f *Frame) Offer(shown ...[]sessions.Event) Offer {
	offer := Offer{Tools: f.Tools}
	if len(f.others) == 0 {
		return offer
	}
	taken := map[string]bool{}
	take := func(name string) {
		one, found := f.others[name]
		if !found || taken[name] || offer.Tokens+one.size > f.room || offer.Tokens > 0 && offer.Tokens+one.size > f.bound {
			return
		}
		taken[name] = true
		offer.Tokens += one.size
	}
	for _, events := range slices.Backward(shown) {
		for _, e := range slices.Backward(events) {
			for _, c := range e.ToolCalls {
				take(c.Name)
			}
			if e.Role == sessions.RoleTool && e.ToolName == chat.SearchTool {
				for _, name := range chat.FoundIn(e.Content) {
					take(name)
				}
			}
		}
	}
	if len(taken) == 0 {
		return offer
	}
	offer.Tools = slices.Clone(f.Tools)
	for name := range taken {
		offer.Tools = append(offer.Tools, f.others[name].spec)
	}
	slices.SortFunc(offer.Tools, byToolName)
	return offer
}
