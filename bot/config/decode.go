package config

import (
	"reflect"

	"github.com/tailscale/hujson"

	"ebb/bot/config/strict"
)

// decodeInto records unknown and repeated keys, wrong types and numbers out of range, and keeps the default. It walks
// the syntax tree itself: encoding/json accepts repeated keys and keys in other letter case, and stops at the first
// wrong type.
func decodeInto(src *strict.Source, root hujson.Value, cfg *Config) {
	strict.Decode(src, "", root, cfg)
	decodeContextWindow(src, root, cfg)
	decodeGroupCompactions(src, root, cfg)
	decodeRobotAccess(src, root, cfg)
}

// decodeGroupCompactions reads groups.ID.compaction on top of agent.compaction, wherever the file has that. Faults of groups itself are
// reported already.
func decodeGroupCompactions(src *strict.Source, root hujson.Value, cfg *Config) {
	v := root.Find("/groups")
	if v == nil {
		return
	}
	obj, _ := v.Value.(*hujson.Object)
	if obj == nil {
		return
	}
	for _, m := range obj.Members {
		name, _ := m.Name.Value.(hujson.Literal)
		own := m.Value.Find("/compaction")
		group, known := cfg.Groups[name.String()]
		if own == nil || !known {
			continue
		}
		set := cfg.Agent.Compaction.CompactionSettings
		strict.Decode(src, groupPath(name.String())+".compaction", *own, &set)
		group.Compaction = &set
		cfg.Groups[name.String()] = group
	}
}

// newSource returns a source that knows the keys of older files, and those that are read after others of the file.
func newSource(name string, data []byte, getenv func(string) string) *strict.Source {
	return strict.NewSource(name, data, getenv, keyRules{})
}

// keyRules are older names of keys, removed keys, and those that are read after the rest of the file.
type keyRules struct{}

func (keyRules) Canonical(t reflect.Type, key string) string { return canonicalKey(t, key) }

func (keyRules) Removed(t reflect.Type, path, key string) string { return removedReason(t, path, key) }

func (keyRules) Refuse(path, text string, t reflect.Type) string { return refuseWritten(path, text, t) }

// IsLater names the keys that decodeInto reads by itself.
func (keyRules) IsLater(t reflect.Type, key string) bool {
	switch t {
	case reflect.TypeFor[AgentConfig]():
		return key == contextWindowKey
	case reflect.TypeFor[GroupConfig]():
		return key == "compaction"
	case reflect.TypeFor[DingTalkConfig]():
		return key == "access"
	}
	return false
}
