// Package config is the configuration file: schema, defaults, checks, and the redacted form that is printed. The reference is config.jsonc at
// the root of the module.
//
// Each section is a file with its struct, its defaults, and the check of its keys, which takes values of other sections as arguments.
// config.go puts the sections together. check.go judges the whole, and warns of values that do not fit together. load.go reads a file by
// package strict, with the names of older bots from older.go. print.go writes the values in force.
package config

import (
	"slices"
	"sync"
	"time"

	"ebb/bot/config/strict"
	"ebb/bot/reload"
	"ebb/compaction"
	"ebb/sessions"
)

// Config is the schema of config.jsonc, which has every field with its default. Durations are written "20s", "5m" or as
// a number of seconds. Tokens are estimates of the model's own tokenizer.
type Config struct {
	// DingTalk has one entry for each bot. A file with one bot has the object itself.
	DingTalk Robots       `json:"dingtalk"`
	LLM      LLMConfig    `json:"llm"`
	Agent    AgentConfig  `json:"agent"`
	Access   AccessConfig `json:"access"`
	// Groups are settings of conversations by id.
	Groups    map[string]GroupConfig `json:"groups"`
	Tools     ToolsConfig            `json:"tools"`
	Schedule  ScheduleConfig         `json:"schedule"`
	Retention RetentionConfig        `json:"retention"`
	Cluster   ClusterConfig          `json:"cluster"`
	Database  DatabaseConfig         `json:"database"`
	Admin     AdminConfig            `json:"admin"`
	Shutdown  ShutdownConfig         `json:"shutdown"`
	Log       LogConfig              `json:"log"`

	// Warnings lists values that were lowered, or that have no effect, one line each with its position.
	Warnings []string `json:"-"`

	// policies include changes from the environment.
	policies map[string]compaction.Policy
}

// Default returns the reference configuration without environment variables: credentials are empty.
func Default() *Config {
	return defaults(strict.NewSource("", nil, func(string) string { return "" }, strict.NoRules{}))
}

// preset is Default, once: checks compare with it, and change nothing.
var preset = sync.OnceValue(Default)

// defaults are the values of the reference file: a test compares the two field by field. Variables are expanded here too, so that a
// file without a section has its secrets from the environment.
func defaults(src *strict.Source) *Config {
	main := defaultModel()
	main.Name, main.Model = "main", "qwen-plus"
	main.BaseURL = "https://dashscope.aliyuncs.com/compatible-mode/v1"
	main.APIKey = Secret(src.Expand("llm.models[0].api_key", "${LLM_API_KEY}"))
	return &Config{
		DingTalk:  Robots{defaultRobot(src)},
		LLM:       LLMConfig{Default: "main", Currency: "CNY", Models: []ModelConfig{main}, MaxConcurrent: 32},
		Agent:     defaultAgent(),
		Access:    defaultAccess(),
		Groups:    map[string]GroupConfig{},
		Tools:     ToolsConfig{ApprovalTimeout: time.Hour, SchemaTokens: 4000, MCP: []MCPConfig{}},
		Schedule:  ScheduleConfig{Enabled: true},
		Retention: defaultRetention(),
		Cluster:   ClusterConfig{LeaseTTL: 5 * time.Second},
		Database:  DatabaseConfig{URL: DSN(src.Expand("database.url", "${DATABASE_URL:-}")), Pooler: poolerNone, Dir: "data/postgres", Migrate: true, MaxConns: 16},
		Admin:     AdminConfig{Listen: "127.0.0.1:8080", Token: Secret(src.Expand("admin.token", "${ADMIN_TOKEN:-}")), DingTalkLogin: defaultLogin()},
		Shutdown:  ShutdownConfig{Drain: 20 * time.Second, Flush: 8 * time.Second, Grace: 60 * time.Second},
		Log:       LogConfig{Level: "info", Format: "auto"},
		policies:  ownPolicies(src),
	}
}

func (c *Config) groupCompactions() []groupCompaction {
	return groupCompactions(c.Groups, c.Agent.Compaction.CompactionSettings, c.policies)
}

// Policies returns the settings of compactions, common and by conversation.
func (c *Config) Policies() (compaction.Settings, map[sessions.ConversationID]compaction.Settings) {
	groups := map[sessions.ConversationID]compaction.Settings{}
	for _, g := range c.groupCompactions() {
		groups[sessions.ConversationID(g.id)] = g.Settings(c.policies)
	}
	return c.Agent.Compaction.Settings(c.policies), groups
}

// GroupSettings returns the settings besides compactions.
func (c *Config) GroupSettings() map[sessions.ConversationID]reload.Group {
	groups := make(map[sessions.ConversationID]reload.Group, len(c.Groups))
	for id, g := range c.Groups {
		groups[sessions.ConversationID(id)] = reload.Group{Scope: sessions.Scope(g.SessionScope), Language: g.Language, Prompt: g.Prompt, Model: g.Model, Tools: g.Tools}
	}
	return groups
}

// WithRobots adds the settings of the bots to those that they share. Those of an only bot are for each code: its frames may have another one
// than its client id.
func (c *Config) WithRobots(common reload.Values) reload.Values {
	ofOne := func(d *DingTalkConfig) reload.Values {
		own := common
		own.Name, own.Common = d.Name, reload.Group{Prompt: d.Prompt, Model: d.Model, Tools: d.Tools}
		if d.Access != nil {
			own.CommandRights, own.Access = d.Access.Rights(), d.Access.Rules(common.Admins)
		}
		return own
	}
	if len(c.DingTalk) == 1 {
		return ofOne(&c.DingTalk[0])
	}
	all := common
	all.Robots = map[sessions.RobotCode]*reload.Values{}
	for i := range c.DingTalk {
		own := ofOne(&c.DingTalk[i])
		all.Robots[sessions.RobotCode(c.DingTalk[i].ClientID)] = &own
	}
	return all
}

// Periods returns the periods of the storage.
func (c *Config) Periods() sessions.Retention {
	r := c.Retention
	return sessions.Retention{
		Events: r.Events, Memories: r.Memories, CompactionLog: r.CompactionLog, Replies: r.Replies, Audit: r.Audit, Pictures: c.Agent.Media.KeepPictures,
	}
}

// Administers lists the groups whose administrator a person is.
func (c *Config) Administers(person string) []string {
	var ids []string
	for id, g := range c.Groups {
		if person != "" && slices.Contains(g.Admins, person) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
