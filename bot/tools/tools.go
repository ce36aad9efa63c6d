// Package tools holds the built-in tools: saving and finding memory, and reading the log. They stay inside the scopes
// of the calling chat; arguments never widen them.
package tools

import (
	"encoding/json"
	"time"

	"ebb/bot/chat"
	"ebb/memory/draft"
)

// Names lists the built-in tools.
func Names() (names []string) {
	for _, t := range append(All(Parts{}, nil), Remind(nil), Finder(nil)) {
		names = append(names, t.Spec().Name)
	}
	return names
}

// All returns the built-in tools. Times are shown in loc.
func All(p Parts, loc *time.Location) []chat.Tool {
	return []chat.Tool{
		tool[json.RawMessage]{ // ParseSave reads the items one by one: a bad one does not spoil the others
			spec: draft.TurnSaveSpec(),
			call: (saver{p.Facts, loc}).call,
		},
		tool[searchArgs]{spec: searchSpec, call: (searcher{p, loc}).call, reads: true},
		tool[getArgs]{spec: getSpec, call: (getter{p, loc}).call, reads: true},
		tool[historyArgs]{spec: historySpec, call: (historian{p, loc}).call, reads: true},
	}
}
