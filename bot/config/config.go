package config

import (
	"cmp"
	"time"

	"ebb/compaction"
)

// Config is the shape of config.jsonc. Every field is in the reference file at the root of the repository, with the same
// defaults; a key left out of a file means what the reference says. Durations are written "20s", "5m" or as a number of
// seconds; tokens are those of the model's own tokenizer, as near as we can count them.
type Config struct {
	DingTalk DingTalkConfig `json:"dingtalk"`
	LLM      LLMConfig      `json:"llm"`
	Agent    AgentConfig    `json:"agent"`
	Cluster  ClusterConfig  `json:"cluster"`
	Database DatabaseConfig `json:"database"`
	Admin    AdminConfig    `json:"admin"`
	Shutdown ShutdownConfig `json:"shutdown"`
	Log      LogConfig      `json:"log"`

	// Warnings are values that were lowered to fit others, or that will not do what they say, one line each with its
	// place in the file. They are for the log at the start; a config with warnings is usable.
	Warnings []string `json:"-"`

	// policies are compaction.Policies as the environment changes them.
	policies map[string]compaction.Policy
}

// DingTalkConfig says which DingTalk app the bot is, and how it answers.
type DingTalkConfig struct {
	// ClientID is the app's Client ID (AppKey). Required by serve.
	ClientID string `json:"client_id"`
	// ClientSecret is the app's Client Secret (AppSecret). Required by serve.
	ClientSecret Secret `json:"client_secret"`
	// APIBase is the host of the stream gateway and the open API. Default https://api.dingtalk.com.
	APIBase string `json:"api_base"`
	// OAPIBase is the only host whose session webhooks are called. Default https://oapi.dingtalk.com.
	OAPIBase string `json:"oapi_base"`
	// Reply is the form of an answer: "markdown", the default and for now the only one.
	Reply string `json:"reply"`
	// CardTemplateID names the card template for reply "card". Default empty; not read yet.
	CardTemplateID string `json:"card_template_id"`
	// RepliesPerMinute bounds the replies into one conversation, as DingTalk's webhooks do. Default 20; 0 means no limit.
	RepliesPerMinute int `json:"replies_per_minute"`
	// Connections says which replicas hold a stream connection: "all", the default, or "one" at a time, for which the others
	// stand by.
	Connections string `json:"connections"`
	// KeepAlive is the time between two pings on the stream connection, 15 to 30 s. Default 20 s.
	KeepAlive time.Duration `json:"keepalive"`
}

// LLMConfig lists the models and says which one answers.
type LLMConfig struct {
	// Default names the model of a conversation. Default "main".
	Default string `json:"default"`
	// Models are the endpoints, in the order in which they stand in for each other. At least one.
	Models []ModelConfig `json:"models"`
	// MaxConcurrent bounds the calls of all models under way at once in one process, at least 1; those that wait take turns
	// by conversation. Flushes, summaries and digests have at most a quarter of them. Default 32.
	MaxConcurrent int `json:"max_concurrent"`
}

// ModelConfig is one OpenAI-compatible endpoint and the model behind it.
type ModelConfig struct {
	// Name is how the rest of this file calls it. Required, unique.
	Name string `json:"name"`
	// BaseURL is the endpoint up to and including its version, as in https://host/v1. Required.
	BaseURL Endpoint `json:"base_url"`
	// APIKey is sent as a bearer token. Empty is allowed, for endpoints that ask for none.
	APIKey Secret `json:"api_key"`
	// Model is the provider's name of the model. Required.
	Model string `json:"model"`
	// MaxOutput bounds one answer, in tokens. Default 4096; lowered to fit agent.compaction.reserve_tokens.
	MaxOutput int `json:"max_output"`
	// Timeout bounds one attempt. Default 120 s.
	Timeout time.Duration `json:"timeout"`
	// FirstToken bounds the time to the first token of an answer, a thought included, while another model could answer.
	// Default 30 s.
	FirstToken time.Duration `json:"first_token_timeout"`
	// Temperature is 0 to 2; null, the default, leaves it to the provider.
	Temperature *float64 `json:"temperature"`
	// PriceIn is the price of a million input tokens, in any currency. Default 0: no price, and no cost is counted.
	PriceIn float64 `json:"price_in"`
	// PriceCached is the price of a million input tokens that the provider read from its cache. Default 0: PriceIn.
	PriceCached float64 `json:"price_cached"`
	// PriceOut is the price of a million output tokens. Default 0.
	PriceOut float64 `json:"price_out"`
	// Retries is how often an attempt is repeated after 429, 5xx or a broken stream, before the next model. Default 3.
	Retries int `json:"retries"`
}

// AgentConfig says how the bot behaves in a conversation.
type AgentConfig struct {
	// Name is what the bot calls itself. Default "Ebb".
	Name string `json:"name"`
	// Language is that of the bot's own words where a message has none, and of summaries: "zh" (default) or "en". The bot's
	// own words, and the model's, are in the asker's language.
	Language string `json:"language"`
	// Languages fix the language of the bot's own words in single conversations, by conversation id. Default none.
	Languages map[string]string `json:"languages"`
	// Prompt is added to the end of the system prompt. Default empty.
	Prompt string `json:"prompt"`
	// SessionScope is "group" (default), one session for a whole group, or "member", one for each member of it. What is
	// saved to memory in a group is the group's either way, but for tasks, which are that member's session's.
	SessionScope string `json:"session_scope"`
	// MergePending answers what came in during a turn together, in the next one. Default true; false: one by one.
	MergePending bool `json:"merge_pending"`
	// MaxMerged bounds how many messages are answered together. Default 20.
	MaxMerged int `json:"max_merged"`
	// Gather is how long a turn waits after a message for others that are sent with it. Default 100 ms; 0: not at all.
	Gather time.Duration `json:"gather"`
	// StaleAfter is the age at which a waiting message gets one honest word instead of an answer. Default 30 min.
	StaleAfter time.Duration `json:"stale_after"`
	// TurnTimeout bounds a turn, all its model calls and tools together. Default 5 min.
	TurnTimeout time.Duration `json:"turn_timeout"`
	// MaxToolRounds bounds how often a turn goes back to the model with tool results. Default 8.
	MaxToolRounds int `json:"max_tool_rounds"`
	// Timezone is the IANA zone of the clock that the model is told. Default Asia/Shanghai.
	Timezone string `json:"timezone"`
	// Admins are the staff ids that may use the admin commands in a chat. Default none.
	Admins []string `json:"admins"`
	// Compaction says when and how a context is flushed and compacted.
	Compaction CompactionConfig `json:"compaction"`
	// Memory says what is kept of conversations for good, and how it comes back.
	Memory MemoryConfig `json:"memory"`
}

// ClusterConfig is about several replicas on one database.
type ClusterConfig struct {
	// LeaseTTL is the age of a replica's heartbeat at which others take its sessions over. Default 5 s, at least 1 s.
	LeaseTTL time.Duration `json:"lease_ttl"`
	// ReplicaID names this process among the replicas. Default empty: generated at each start.
	ReplicaID string `json:"replica_id"`
}

// DatabaseConfig says where PostgreSQL is.
type DatabaseConfig struct {
	// URL is a PostgreSQL URL or keyword string. Empty, the default without DATABASE_URL: a private server in Dir.
	URL DSN `json:"url"`
	// DirectURL leads to the server itself where URL leads to a pooler: migrations and notifications go there. Default
	// empty: URL.
	DirectURL DSN `json:"direct_url"`
	// Pooler is what URL leads to: "none" (default), the server itself, or "transaction", a pooler that hands out
	// connections by the transaction, such as PgBouncer. Then DirectURL is required.
	Pooler string `json:"pooler"`
	// Dir holds the data of the private server. Default data/postgres, from where the bot is started.
	Dir string `json:"dir"`
	// Migrate brings the schema up to date at the start. Default true.
	Migrate bool `json:"migrate"`
	// MaxConns bounds the pool of connections. One more listens, and two more are for heartbeats. Default 16, at least 2.
	MaxConns int `json:"max_conns"`
}

// Which replicas hold a stream connection.
const (
	ConnectionsAll = "all"
	ConnectionsOne = "one"
)

// What database.url may lead to.
const (
	poolerNone        = "none"
	PoolerTransaction = "transaction"
)

// direct is the address of the server itself, behind any pooler.
func (d *DatabaseConfig) Direct() DSN { return cmp.Or(d.DirectURL, d.URL) }

// AdminConfig is the HTTP side: health, metrics, console.
type AdminConfig struct {
	// Listen is host:port, empty for no admin server. Default 127.0.0.1:8080.
	Listen string `json:"listen"`
	// Token opens the console to other machines. Default empty: the console answers on loopback only.
	Token Secret `json:"token"`
}

// ShutdownConfig bounds the two long parts of a clean stop. Before them up to 3 s go by until intake has ended, and after
// them a few more for cleaning up: a supervisor should wait twice their sum before it kills.
type ShutdownConfig struct {
	// Drain is how long turns in flight may take to finish, more than 0. Default 20 s.
	Drain time.Duration `json:"drain"`
	// Flush is how long the flush of active sessions into memory may take after that, more than 0. Default 8 s.
	Flush time.Duration `json:"flush"`
}

// LogConfig is about the log on standard error.
type LogConfig struct {
	// Level is trace, debug, info (default), warn or error.
	Level string `json:"level"`
	// Format is json, console, or auto (default): console on a terminal, else json.
	Format string `json:"format"`
}

// Model returns the model of that name, the default one when name is empty, and whether there is one.
func (l *LLMConfig) Model(name string) (ModelConfig, bool) {
	if name == "" {
		name = l.Default
	}
	for _, m := range l.Models {
		if m.Name == name {
			return m, true
		}
	}
	return ModelConfig{}, false
}

// Default returns the configuration of the reference file where no environment variable is set: credentials are empty.
func Default() *Config {
	return defaults(newSource("", nil, func(string) string { return "" }))
}

// defaults is the reference file in Go; src reads the environment for the fields that come from there.
func defaults(src *source) *Config {
	main := defaultModel()
	main.Name, main.Model = "main", "qwen-plus"
	main.BaseURL = "https://dashscope.aliyuncs.com/compatible-mode/v1"
	main.APIKey = Secret(src.expand("llm.models[0].api_key", "${LLM_API_KEY}"))
	return &Config{
		DingTalk: DingTalkConfig{
			ClientID:         src.expand("dingtalk.client_id", "${DINGTALK_CLIENT_ID}"),
			ClientSecret:     Secret(src.expand("dingtalk.client_secret", "${DINGTALK_CLIENT_SECRET}")),
			APIBase:          "https://api.dingtalk.com",
			OAPIBase:         "https://oapi.dingtalk.com",
			Reply:            "markdown",
			RepliesPerMinute: 20,
			Connections:      ConnectionsAll,
			KeepAlive:        20 * time.Second,
		},
		LLM: LLMConfig{Default: "main", Models: []ModelConfig{main}, MaxConcurrent: 32},
		Agent: AgentConfig{
			Name: "Ebb", Language: "zh", Languages: map[string]string{}, SessionScope: "group",
			MergePending: true, MaxMerged: 20, Gather: 100 * time.Millisecond,
			StaleAfter: 30 * time.Minute, TurnTimeout: 5 * time.Minute, MaxToolRounds: 8,
			Timezone: "Asia/Shanghai", Admins: []string{},
			Compaction: defaultCompaction(), Memory: defaultMemory(),
		},
		Cluster:  ClusterConfig{LeaseTTL: 5 * time.Second},
		Database: DatabaseConfig{URL: DSN(src.expand("database.url", "${DATABASE_URL:-}")), Pooler: poolerNone, Dir: "data/postgres", Migrate: true, MaxConns: 16},
		Admin:    AdminConfig{Listen: "127.0.0.1:8080", Token: Secret(src.expand("admin.token", "${ADMIN_TOKEN:-}"))},
		Shutdown: ShutdownConfig{Drain: 20 * time.Second, Flush: 8 * time.Second},
		Log:      LogConfig{Level: "info", Format: "auto"},
		policies: ownPolicies(src),
	}
}

// defaultModel is what an entry of llm.models starts from.
func defaultModel() ModelConfig {
	return ModelConfig{MaxOutput: 4096, Timeout: 120 * time.Second, FirstToken: 30 * time.Second, Retries: 3}
}
