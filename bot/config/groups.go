package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"ebb/bot/reload"
	"ebb/bot/tools"
	"ebb/compaction"
	"ebb/sessions"
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
	// Tools are the tools that the model may use. Empty: all.
	Tools []string `json:"tools"`
	// Admins are the staff ids of those who see and act on this group in the console.
	Admins []string `json:"admins"`
}

func ownGroupPath(id string) string { return join("groups", keyText(id)) }

func (c *Config) checkGroups(k checker) {
	toolNames := tools.Names()
	for _, id := range slices.Sorted(maps.Keys(c.Groups)) {
		g, at := c.Groups[id], ownGroupPath(id)
		if id == "" {
			k.fail(at, "got an empty key, want the id of a conversation")
			continue
		}
		k.conversation(at, id)
		optional := func(key, got string, choices []string) {
			k.expects(at+"."+key, quoted(choices))
			if got != "" {
				k.oneOf(at+"."+key, got, choices)
			}
		}
		optional("session_scope", g.SessionScope, sessionScopes)
		optional("language", g.Language, []string{"zh", "en"})
		k.want(g.Model == "" || c.LLM.has(g.Model), at+".model", strconv.Quote(g.Model), "the name of a model in llm.models: %s", c.LLM.names())
		for i, name := range g.Tools {
			k.want(slices.Contains(toolNames, name), fmt.Sprintf("%s.tools[%d]", at, i), strconv.Quote(name), "%s", quoted(toolNames))
		}
		for i, person := range g.Admins {
			k.person(fmt.Sprintf("%s.admins[%d]", at, i), person)
		}
		c.checkGroupPolicy(k, id, g.Policy)
	}
}

func (c *Config) checkGroupPolicy(k checker, id, policy string) {
	path := ownGroupPath(id) + ".policy"
	if policy == "" {
		return
	}
	_, known := c.policies[policy]
	k.want(known, path, strconv.Quote(policy), "%s", quoted(slices.Sorted(maps.Keys(c.policies))))
	other := groupPath(id) + ".policy"
	if _, twice := k.at[other]; known && twice {
		k.fail(path, "given as %s too, want one of the two", other)
	}
	if set, both := c.compactionGroups()[id], c.hasCompactionGroup(id); known && !both {
		set.check(k, ownGroupPath(id)+".", c.policies)
	}
}

func (c *Config) hasCompactionGroup(id string) bool {
	_, ok := c.Agent.Compaction.Groups[id]
	return ok
}

func (c *Config) compactionGroups() map[string]CompactionSettings {
	all := map[string]CompactionSettings{}
	maps.Copy(all, c.Agent.Compaction.Groups)
	for id, g := range c.Groups {
		if _, known := c.policies[g.Policy]; !known {
			continue
		}
		set, ok := all[id]
		if !ok {
			set = c.Agent.Compaction.CompactionSettings
		}
		set.Policy = g.Policy
		all[id] = set
	}
	return all
}

// GroupSettings returns the settings besides compactions.
func (c *Config) GroupSettings() map[sessions.ConversationID]reload.Group {
	groups := make(map[sessions.ConversationID]reload.Group, len(c.Groups))
	for id, g := range c.Groups {
		groups[sessions.ConversationID(id)] = reload.Group{Scope: sessions.Scope(g.SessionScope), Language: g.Language, Prompt: g.Prompt, Model: g.Model, Tools: g.Tools}
	}
	return groups
}

// Policies returns the settings of compactions, common and by conversation.
func (c *Config) Policies() (compaction.Settings, map[sessions.ConversationID]compaction.Settings) {
	groups := map[sessions.ConversationID]compaction.Settings{}
	for id, g := range c.compactionGroups() {
		groups[sessions.ConversationID(id)] = g.Settings(c.policies)
	}
	return c.Agent.Compaction.Settings(c.policies), groups
}
