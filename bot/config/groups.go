package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ebb/bot/config/strict"
	"ebb/bot/reload"
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
	// Compaction has further keys in place of those of agent.compaction; the others are filled in from there. Nil: none.
	Compaction *CompactionSettings `json:"compaction"`
	// Tools are the tools that the model may use: names of built-in ones, of servers in tools.mcp, or of one tool of a server. Empty: all.
	Tools []string `json:"tools"`
	// Admins are the staff ids of those who see and act on this group in the console.
	Admins []string `json:"admins"`
}

func groupPath(id string) string { return strict.Join("groups", strict.KeyText(id)) }

// checkGroups judges the keys of each group, then the compactions that result from them and the common settings.
func (c *Config) checkGroups(k *strict.Source) {
	for _, id := range slices.Sorted(maps.Keys(c.Groups)) {
		g, at := c.Groups[id], groupPath(id)
		if id == "" {
			k.Fail(at, "got an empty key, want the id of a conversation")
			continue
		}
		wantConversation(k, at, id)
		optional := func(key, got string, choices []string) {
			k.Expects(at+"."+key, strict.Quoted(choices))
			if got != "" {
				k.OneOf(at+"."+key, got, choices)
			}
		}
		optional("session_scope", g.SessionScope, sessionScopes)
		optional("language", g.Language, []string{"zh", "en"})
		k.Want(g.Model == "" || c.LLM.has(g.Model), at+".model", strconv.Quote(g.Model), "the name of a model in llm.models: %s", c.LLM.names())
		c.checkToolNames(k, at, g.Tools)
		for i, name := range g.Tools {
			server := c.Tools.serverOf(name)
			k.Advise(server == nil || server.serves(id), fmt.Sprintf("%s.tools[%d]", at, i), "%q does nothing: the groups of its server in tools.mcp leave out this conversation", name)
		}
		for i, person := range g.Admins {
			wantPerson(k, fmt.Sprintf("%s.admins[%d]", at, i), person)
		}
		c.checkGroupPolicy(k, id, g.Policy)
	}
	for _, g := range c.groupCompactions() {
		g.check(k, g.at, c.policies)
	}
}

func (c *Config) checkGroupPolicy(k *strict.Source, id, policy string) {
	path := groupPath(id) + ".policy"
	if policy == "" {
		return
	}
	_, known := c.policies[policy]
	k.Want(known, path, strconv.Quote(policy), "%s", strict.Quoted(slices.Sorted(maps.Keys(c.policies))))
	if other := groupPath(id) + ".compaction.policy"; known && k.IsGiven(other) {
		k.Fail(path, "given as %s too, want one of the two", other)
	}
}

// groupCompaction is the compaction of a group whose settings differ from the common ones.
type groupCompaction struct {
	id, at string // at is the path of its keys, with a dot behind it
	CompactionSettings
}

// groupCompactions lists them by id. A policy of the group itself replaces the one below it; checks refuse a file with both.
func (c *Config) groupCompactions() (list []groupCompaction) {
	for _, id := range slices.Sorted(maps.Keys(c.Groups)) {
		g := c.Groups[id]
		_, hasPolicy := c.policies[g.Policy]
		if g.Compaction == nil && !hasPolicy {
			continue
		}
		own := groupCompaction{id, groupPath(id) + ".", c.Agent.Compaction.CompactionSettings}
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
	for _, g := range c.groupCompactions() {
		groups[sessions.ConversationID(g.id)] = g.Settings(c.policies)
	}
	return c.Agent.Compaction.Settings(c.policies), groups
}

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
	if root, ok := src.Parse(); ok {
		strict.Decode(src, "", root, &set)
	}
	if src.Err() == nil {
		set.check(src, "", c.policies)
	}
	if bad, ok := errors.AsType[*strict.Error](src.Err()); ok {
		var problems []string
		for _, f := range bad.Fields {
			problems = append(problems, strings.TrimPrefix(f.Field+": "+f.Problem, ": "))
		}
		return compaction.Settings{}, fmt.Errorf("%s", strings.Join(problems, "; "))
	}
	return set.Settings(c.policies), nil
}
