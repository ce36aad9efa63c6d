package config

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"ebb/compaction"
	"ebb/sessions"
)

// Own resolves a conversation's own settings, a JSON object, on top of its group's or the common ones, with the
// file's checks. Variables are not expanded: the settings may come from a chat.
func (c *Config) Own(id sessions.ConversationID, settings string) (compaction.Settings, error) {
	set := c.Agent.Compaction.CompactionSettings
	for _, g := range c.groupCompactions() {
		if g.id == string(id) {
			set = g.CompactionSettings
		}
	}
	src := newSource("", []byte(settings), func(string) string { return "" })
	if strings.Contains(settings, "$") {
		return compaction.Settings{}, errors.New("got a value with $, want it as it stands")
	}
	if root, ok := src.parse(); ok {
		decode(src, "", root, reflect.ValueOf(&set).Elem())
	}
	if src.err() == nil {
		set.check(checker{src}, "", c.policies)
	}
	if bad, ok := errors.AsType[*Error](src.err()); ok {
		var problems []string
		for _, f := range bad.Fields {
			problems = append(problems, strings.TrimPrefix(f.Field+": "+f.Problem, ": "))
		}
		return compaction.Settings{}, fmt.Errorf("%s", strings.Join(problems, "; "))
	}
	return set.Settings(c.policies), nil
}
