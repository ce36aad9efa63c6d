// Package config is the configuration file: schema, defaults, checks, and the redacted form that is printed. Package strict below it decodes
// the file and places each mistake. The reference is config.jsonc at the root of the module.
package config

import (
	"cmp"
	"sync"
	"time"

	"ebb/bot/config/strict"
	"ebb/compaction"
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

// LLMConfig lists the models and the default one.
type LLMConfig struct {
	// Default names the model of a conversation. Absent: "main", or the first of Models where none has that name.
	Default string `json:"default"`
	// Models are the endpoints in the order of fallback. At least one.
	Models []ModelConfig `json:"models"`
	// Currency is that of all prices: a code such as CNY, or a sign such as ¥. Empty: costs are figures alone.
	Currency string `json:"currency"`
	// MaxConcurrent bounds the concurrent calls of a process, at least 1, of which flushes, summaries and digests
	// have at most a quarter.
	MaxConcurrent int `json:"max_concurrent"`
}

// ModelConfig is one OpenAI-compatible endpoint and the model behind it.
type ModelConfig struct {
	// Name refers to the model in this file. Required, unique.
	Name string `json:"name"`
	// BaseURL ends with its version, as in https://host/v1. Required.
	BaseURL Endpoint `json:"base_url"`
	// APIKey is a bearer token; empty for endpoints without authentication.
	APIKey Secret `json:"api_key"`
	// Model is the provider's name. Required.
	Model string `json:"model"`
	// MaxOutput bounds one answer, in tokens, lowered to fit agent.compaction.reserve_tokens.
	MaxOutput int `json:"max_output"`
	// Timeout bounds one attempt.
	Timeout time.Duration `json:"timeout"`
	// FirstToken bounds the time to the first token of an answer or thought, while another model is available.
	FirstToken time.Duration `json:"first_token_timeout"`
	// Temperature is 0 to 2; null: the provider's own.
	Temperature *float64 `json:"temperature"`
	// Params are fields of the provider, merged into each request of this model.
	Params Params `json:"params"`
	// Vision says whether the model sees pictures; null: learned from the first refusal.
	Vision *bool `json:"vision"`
	// PriceIn is for a million input tokens, in llm.currency. 0: costs are not counted.
	PriceIn float64 `json:"price_in"`
	// PriceCached is for those from the provider's cache. 0: PriceIn.
	PriceCached float64 `json:"price_cached"`
	// PriceOut is for a million output tokens.
	PriceOut float64 `json:"price_out"`
	// Retries follow 429, 5xx or a broken stream, before the next model.
	Retries int `json:"retries"`
}

// AgentConfig has the bot's behavior in conversations.
type AgentConfig struct {
	Name string `json:"name"`
	// Language is "zh" or "en", for fixed words as a fallback, and for summaries and facts of groups without their own.
	Language string `json:"language"`
	// Prompt ends the system prompt.
	Prompt string `json:"prompt"`
	// SessionScope is "group", one session for a whole group, or "member", one for each member. Facts from a group
	// belong to the group in both cases, except tasks, which belong to the member's session.
	SessionScope string `json:"session_scope"`
	// MergePending answers messages that arrive during a turn together. False: one by one.
	MergePending bool `json:"merge_pending"`
	// MaxMerged bounds the messages of one turn.
	MaxMerged int `json:"max_merged"`
	// Gather is the wait before a turn for messages sent together. 0: none.
	Gather time.Duration `json:"gather"`
	// BusyNote is the time after which a running turn is announced. 0: never.
	BusyNote time.Duration `json:"busy_note"`
	// StaleAfter is the age at which a waiting message gets an apology.
	StaleAfter time.Duration `json:"stale_after"`
	// TurnTimeout includes all model calls and tools.
	TurnTimeout time.Duration `json:"turn_timeout"`
	// MaxToolRounds bounds the calls with tool results in a turn.
	MaxToolRounds int `json:"max_tool_rounds"`
	// Timezone is the IANA zone of times in requests.
	Timezone string `json:"timezone"`
	// Admins are the staff ids of administrators.
	Admins     []string         `json:"admins"`
	Limits     LimitsConfig     `json:"limits"`
	Compaction CompactionConfig `json:"compaction"`
	Memory     MemoryConfig     `json:"memory"`
	Media      MediaConfig      `json:"media"`
}

// ClusterConfig has the settings of replicas on one database.
type ClusterConfig struct {
	// LeaseTTL is the age of a heartbeat at which other replicas take over, at least 1 s.
	LeaseTTL time.Duration `json:"lease_ttl"`
	// ReplicaID names this process. Empty: generated at each start.
	ReplicaID string `json:"replica_id"`
}

// DatabaseConfig has the addresses of PostgreSQL.
type DatabaseConfig struct {
	// URL is a PostgreSQL URL or keyword string. Empty: a private server in Dir.
	URL DSN `json:"url"`
	// DirectURL is the server behind a pooler, for migrations and notifications. Empty: URL.
	DirectURL DSN `json:"direct_url"`
	// Pooler is "none", PostgreSQL itself behind URL, or "transaction", a transaction pooler such as PgBouncer, which
	// requires DirectURL.
	Pooler string `json:"pooler"`
	// Dir holds the private server's data.
	Dir string `json:"dir"`
	// Migrate runs pending migrations at the start.
	Migrate bool `json:"migrate"`
	// MaxConns bounds the pool, besides one connection that listens, two for heartbeats and four for the console, at least 2.
	MaxConns int `json:"max_conns"`
}

// Values of database.pooler.
const (
	poolerNone        = "none"
	PoolerTransaction = "transaction"
)

// Direct returns the server's own address, behind any pooler.
func (d *DatabaseConfig) Direct() DSN { return cmp.Or(d.DirectURL, d.URL) }

// ShutdownConfig bounds the two long phases of a clean stop. Intake takes up to 3 s to end before them, and cleanup a
// few seconds after them.
type ShutdownConfig struct {
	// Drain bounds the wait for turns in flight, more than 0.
	Drain time.Duration `json:"drain"`
	// Flush bounds the flushes after that, more than 0.
	Flush time.Duration `json:"flush"`
	// Grace is the time that the supervisor waits before it kills: at least drain, flush and 10 s together.
	Grace time.Duration `json:"grace"`
}

// LogConfig is for the log on standard error.
type LogConfig struct {
	// Level is trace, debug, info, warn or error.
	Level string `json:"level"`
	// Format is json, console, or auto: console on a terminal, otherwise json.
	Format string `json:"format"`
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
		DingTalk: Robots{defaultRobot(src)},
		LLM:      LLMConfig{Default: "main", Currency: "CNY", Models: []ModelConfig{main}, MaxConcurrent: 32},
		Agent: AgentConfig{
			Limits: LimitsConfig{UnidentifiedTurns: 20, ScheduledTurns: 48, Compactions: 10},
			Name:   "Ebb", Language: "zh", SessionScope: "group",
			MergePending: true, MaxMerged: 20, Gather: 100 * time.Millisecond,
			BusyNote: 30 * time.Second, StaleAfter: 30 * time.Minute, TurnTimeout: 5 * time.Minute, MaxToolRounds: 8,
			Timezone: "Asia/Shanghai", Admins: []string{},
			Compaction: defaultCompaction(), Memory: defaultMemory(), Media: defaultMedia(),
		},
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

func defaultModel() ModelConfig {
	return ModelConfig{MaxOutput: 4096, Timeout: 120 * time.Second, FirstToken: 30 * time.Second, Retries: 3}
}

// SetDefaults fills in a model of a list.
func (m *ModelConfig) SetDefaults(src *strict.Source, path string, n int) {
	*m = defaultModel()
	// The reference file has an explicitly empty key for endpoints without authentication.
	m.APIKey = Secret(src.Expand(path+".api_key", "${LLM_API_KEY:-}"))
	if n == 1 {
		m.Name = "main"
	}
}
