package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/tailscale/hujson"

	"ebb/bot/config/strict"
	"ebb/compaction"
)

// GroupConfig has the settings of one conversation. An empty field keeps the common value.
type GroupConfig struct {
	// SessionScope replaces agent.session_scope.
	SessionScope string `json:"session_scope"`
	// Language is "zh" or "en". Empty: that of the sender, and agent.language for summaries and facts.
	Language string `json:"language"`
	// Prompt replaces agent.prompt.
	Prompt string `json:"prompt"`
	// Model replaces llm.default. The other models stay behind it as fallbacks.
	Model string `json:"model"`
	// Policy replaces agent.compaction.policy.
	Policy string `json:"policy"`
	// Compaction has further keys in place of those of agent.compaction; the others are filled in from there. Nil: none.
	Compaction *CompactionSettings `json:"compaction"`
	// Tools are the tools that the model may use: names of built-in ones, of servers in tools.mcp, or of one tool of a server. Empty: all.
	Tools []string `json:"tools"`
	// Admins are the staff ids of those who see and act on this group in the console.
	Admins []string `json:"admins"`
}

func groupPath(id string) string { return strict.Join("groups", strict.KeyText(id)) }

// decodeGroupCompactions reads groups.ID.compaction on top of agent.compaction, wherever the file has that. Faults of groups itself are
// reported already.
func decodeGroupCompactions(src *strict.Source, root hujson.Value, groups map[string]GroupConfig, common CompactionSettings) {
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
		group, known := groups[name.String()]
		if own == nil || !known {
			continue
		}
		set := common
		strict.Decode(src, groupPath(name.String())+".compaction", *own, &set)
		group.Compaction = &set
		groups[name.String()] = group
	}
}

// check judges the keys of the conversation with this id.
func (g *GroupConfig) check(k *strict.Source, at, id string, llm LLMConfig, toolsConfig ToolsConfig) {
	optional := func(key, got string, choices []string) {
		k.Expects(at+"."+key, strict.Quoted(choices))
		if got != "" {
			k.OneOf(at+"."+key, got, choices)
		}
	}
	optional("session_scope", g.SessionScope, sessionScopes)
	optional("language", g.Language, []string{"zh", "en"})
	k.Want(g.Model == "" || llm.has(g.Model), at+".model", strconv.Quote(g.Model), "the name of a model in llm.models: %s", llm.names())
	toolsConfig.checkNames(k, at, g.Tools)
	for i, name := range g.Tools {
		server := toolsConfig.serverOf(name)
		k.Advise(server == nil || server.serves(id), fmt.Sprintf("%s.tools[%d]", at, i), "%q does nothing: the groups of its server in tools.mcp leave out this conversation", name)
	}
	for i, person := range g.Admins {
		wantPerson(k, fmt.Sprintf("%s.admins[%d]", at, i), person)
	}
}

func (g *GroupConfig) checkPolicy(k *strict.Source, at string, own map[string]compaction.Policy) {
	if g.Policy == "" {
		return
	}
	_, known := own[g.Policy]
	k.Want(known, at+".policy", strconv.Quote(g.Policy), "%s", strict.Quoted(slices.Sorted(maps.Keys(own))))
	if other := at + ".compaction.policy"; known && k.IsGiven(other) {
		k.Fail(at+".policy", "given as %s too, want one of the two", other)
	}
}

// groupCompaction is the compaction of a group whose settings differ from the common ones.
type groupCompaction struct {
	id, at string // at is the path of its keys, with a dot behind it
	CompactionSettings
}

// groupCompactions lists them by id. A policy of the group itself replaces the one below it; checks refuse a file with both.
func groupCompactions(groups map[string]GroupConfig, common CompactionSettings, policies map[string]compaction.Policy) (list []groupCompaction) {
	for _, id := range slices.Sorted(maps.Keys(groups)) {
		g := groups[id]
		_, hasPolicy := policies[g.Policy]
		if g.Compaction == nil && !hasPolicy {
			continue
		}
		own := groupCompaction{id, groupPath(id) + ".", common}
		if g.Compaction != nil {
			own.at, own.CompactionSettings = own.at+"compaction.", *g.Compaction
		}
		if hasPolicy {
			own.Policy = g.Policy
		}
		list = append(list, own)
	}
	return list
}
