package config

import (
	"reflect"
	"slices"
	"strings"

	"ebb/bot/config/strict"
)

// reloaded are the values that a running bot takes from a newer file, with all below them, except the fixed ones.
var (
	reloaded = []string{
		"llm.default", "llm.currency", "llm.models", "access", "groups", "agent.admins", "agent.limits", "agent.compaction", "schedule", "retention", "log.level",
		"dingtalk.name", "dingtalk.prompt", "dingtalk.model", "dingtalk.tools", "dingtalk.access",
	}
	fixed = []string{
		"agent.compaction.inline_deadline", "agent.compaction.deadline", "agent.compaction.retries",
		"agent.compaction.notify",
	}
)

// Changes returns the paths of the values that differ in next: those that a running bot takes over, and those that
// need a restart. A list or map is one value.
func (c *Config) Changes(next *Config) (live, restart []string) {
	for _, path := range differences("", reflect.ValueOf(*c), reflect.ValueOf(*next)) {
		if isBelow(path, reloaded) && !isBelow(path, fixed) {
			live = append(live, path)
		} else {
			restart = append(restart, path)
		}
	}
	return live, restart
}

func isBelow(path string, list []string) bool {
	path = withoutIndex(path)
	return slices.ContainsFunc(list, func(above string) bool { return path == above || strings.HasPrefix(path, above+".") })
}

// A bot is compared with the bot in its place.
func differences(path string, a, b reflect.Value) []string {
	if a.Type() == robotsType && a.Len() == b.Len() && a.Len() > 0 {
		var all []string
		for i := range a.Len() {
			at := path
			if a.Len() > 1 {
				at = listedPath(i)
			}
			all = append(all, differences(at, a.Index(i), b.Index(i))...)
		}
		return all
	}
	if a.Kind() != reflect.Struct {
		if reflect.DeepEqual(a.Interface(), b.Interface()) {
			return nil
		}
		return []string{path}
	}
	var all []string
	set := strict.FieldsOf(a.Type())
	for _, name := range set.Names {
		all = append(all, differences(strict.Join(path, name), a.FieldByIndex(set.Index[name]), b.FieldByIndex(set.Index[name]))...)
	}
	return all
}
