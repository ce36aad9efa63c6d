package config

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

const longID = "cidAbCdEfGh12=="

func dingtalkFile(keys string) string { return fmt.Sprintf(`{"dingtalk": {%s}}`, keys) }

func agentFile(keys string) string { return fmt.Sprintf(`{"agent": {%s}}`, keys) }

func modelAt(address string) string {
	return fmt.Sprintf(`{"llm": {"models": [{"base_url": %s, "model": "m", "api_key": ""}]}}`, address)
}

func embeddingsFile(keys string) string { return memoryFile(fmt.Sprintf(`"embeddings": {%s}`, keys)) }

// Paths are added to an address, so that one with a query, a fragment or the path of a function leads nowhere.
func TestAddressesWithMoreAreRefused(t *testing.T) {
	t.Parallel()
	const (
		query    = "got an address with a query behind ?, want the URL of a server"
		fragment = "got an address with a fragment behind #, want the URL of a server"
		user     = "got a user name in the URL, want the URL of a server"
		plain    = ", want the URL of a server"
	)
	for key, file := range map[string]func(string) string{
		"dingtalk.api_base":                func(v string) string { return dingtalkFile(`"api_base": ^` + v) },
		"dingtalk.oapi_base":               func(v string) string { return dingtalkFile(`"oapi_base": ^` + v) },
		"llm.models[0].base_url":           func(v string) string { return `{"llm": {"models": [{"base_url": ^` + v + `, "model": "m"}]}}` },
		"agent.memory.embeddings.base_url": func(v string) string { return embeddingsFile(`"model": "m", "base_url": ^` + v) },
	} {
		for value, want := range map[string]string{
			"https://h/v1?key=hunter2": query, "https://h/v1?": query, "https://h/v1#top": fragment, "https://h/v1#": fragment,
			"https://hunter2@h/v1": user, "https://u:hunter2@h/v1": user,
			"https:///v1": plain, "https://h:99999/v1": plain, "https://h:0/v1": plain, "https://https://h/v1": plain,
			"https://h/v1 ": plain, " https://h/v1": plain, "https:// h/v1": plain, "https：//h/v1": plain, "h/v1": plain, "localhost:8080/v1": plain, "ftp://h/v1": plain,
			"<https://h/v1>": plain, "https://{host}/v1": plain, "https://h,i/v1": plain, "https:h/v1": plain,
			"https://$HOST/v1": "got the name of a variable in another form, want ${NAME}", "$URL": "got the name of a variable in another form, want ${NAME}",
		} {
			quoted, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			t.Run(key+" "+value, errorCase{"", file(string(quoted)), key + ": "}.run)
			t.Run(key+" "+value, func(t *testing.T) {
				t.Parallel()
				_, err := parseConfig("f.jsonc", []byte(strings.Replace(file(string(quoted)), "^", "", 1)), env(), NeedNothing)
				if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("got %v, want %s", err, want)
				}
			})
		}
	}
	for _, address := range []string{"https://h/v1", "https://h/v1/", "http://127.0.0.1:8080/v1", "http://[::1]:80/v1", "https://a-b.c_d.example:8443/compatible-mode/v1", "http://h",
		"http://:8080/v1", "https://h:/v1", "https://域名.例子/v1", "http://[fe80::1%25eth0]:8080/v1", "http://127.0.0.1:8080//v1", "https://h/模型/v1", "https://h/$5/v1"} {
		mustParse(t, `{"llm": {"models": [{"base_url": "`+address+`", "model": "m"}]}}`)
		mustParse(t, embeddingsFile(`"model": "m", "base_url": "`+address+`"`))
	}
}

// A variable as other programs write it would be taken as it stands, secrets among them.
func TestVariablesInOtherFormsAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"$hunter2", "$HUNTER", "$(HUNTER)", "%HUNTER%", "{{ hunter2 }}", "{{.Values.hunter2}}", "{HUNTER_2}", "env:HUNTER", "$env:HUNTER", "os.environ/HUNTER", " $HUNTER "} {
		for key, file := range map[string]string{
			"dingtalk.client_id": dingtalkFile(`"client_id": ^%q`), "dingtalk.client_secret": dingtalkFile(`"client_secret": ^%q`),
			"llm.models[0].api_key":           modelFile(`"api_key": ^%q`),
			"agent.memory.embeddings.api_key": embeddingsFile(`"api_key": ^%q`), "database.url": `{"database": {"url": ^%q}}`,
			"admin.token": `{"admin": {"token": ^%q}}`,
		} {
			want := key + ": got the name of a variable in another form, want ${NAME}"
			t.Run(key+" "+text, errorCase{"", fmt.Sprintf(file, text), want}.run)
		}
	}
	cfg := mustParse(t, agentFile(`"prompt": "Prices are in $US, and $HOME is a path. Write {{name}} for a name."`))
	if !strings.Contains(cfg.Agent.Prompt, "$HOME") {
		t.Errorf("the prompt is %q", cfg.Agent.Prompt)
	}
}

// Each field with a list of values names them, whatever the file has there.
func TestChoicesAreNamed(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"dingtalk.reply": `"markdown" or "card"`, "dingtalk.card_stream": `"auto" or "always" or "never"`, "dingtalk.reaction": `"off" or "on"`,
		"dingtalk.connections": `"all" or "one"`, "agent.language": `"zh" or "en"`, "agent.session_scope": `"group" or "member"`,
		"agent.memory.recall": `"questions" or "always" or "off"`, "agent.memory.extract": `"flush" or "every_turn"`, "agent.memory.digest": `"HH:MM" or ""`,
		"agent.compaction.policy": `"archive" or "balanced" or`, "agent.compaction.mode": `"summary_only" or`, "agent.compaction.flush": `"auto" or "on" or "off"`,
		"groups.a.language": `"zh" or "en"`, "groups.a.session_scope": `"group" or "member"`, "access.commands.compact": `"anyone" or "owner" or "admin"`,
		"schedule.quiet_hours": `hours such as "22:00-08:00"`, "database.pooler": `"none" or "transaction"`, "log.level": `"trace" or "debug"`, "log.format": `"auto" or "json"`,
	} {
		keys := strings.Split(path, ".")
		for value, got := range map[string]string{"true": "got true or false", "3": "got a number", `["x"]`: "got a list", `{"a": 1}`: "got an object", `"X Y"`: `got "X Y"`, "null": "got null"} {
			if path == "agent.compaction.mode" || path == "agent.compaction.flush" {
				if value == "null" { // it stands for the policy's own
					continue
				}
			}
			text := "^" + value
			for i := len(keys) - 1; i >= 0; i-- {
				text = fmt.Sprintf(`{%q: %s}`, keys[i], text)
			}
			t.Run(path+" "+value, errorCase{"", text, path + ": " + got + ", want " + want}.run)
		}
	}
}

// Values that no installation is meant to have, and that would pass without a word.
func TestMistakesAreRefused(t *testing.T) {
	t.Parallel()
	const staff, chat = ", want a staff id, such as", ", want the id of a conversation, such as"
	for _, tt := range []errorCase{
		{"path of the open API", dingtalkFile(`"api_base": ^"https://api.dingtalk.com/v1.0"`), `dingtalk.api_base: got "https://api.dingtalk.com/v1.0", want the server alone, as in https://api.dingtalk.com`},
		{"path of a webhook", dingtalkFile(`"oapi_base": ^"https://oapi.dingtalk.com/robot/sendBySession"`), "dingtalk.oapi_base: got"},
		{"path of the older API", dingtalkFile(`"oapi_base": ^"https://oapi.dingtalk.com/topapi"`), "dingtalk.oapi_base: got"},
		{"one server for the other", dingtalkFile(`"api_base": ^"https://oapi.dingtalk.com"`), `dingtalk.api_base: got "https://oapi.dingtalk.com", want the server alone, as in https://api.dingtalk.com`},
		{"the other one too", dingtalkFile(`"oapi_base": ^"https://api.dingtalk.com"`), "dingtalk.oapi_base: got"},
		{"printed secret", dingtalkFile(`"client_secret": ^"***"`), "dingtalk.client_secret: got ***, which stands for a secret where a configuration is printed, want the Client Secret"},
		{"printed key", modelFile(`"api_key": ^"***"`), "llm.models[0].api_key: got ***"},
		{"printed token", `{"admin": {"token": ^"***"}}`, "admin.token: got ***"},
		{"printed key of embeddings", embeddingsFile(`"api_key": ^"***"`), "agent.memory.embeddings.api_key: got ***"},
		{"printed password", `{"database": {"url": ^"postgres://u:***@h/d"}}`, "database.url: got ***, which stands for a password where a configuration is printed, want postgres://"},
		{"milliseconds between updates", dingtalkFile(`"card_interval": ^800`), "dingtalk.card_interval: got 13m20s, want 100ms to 1m"},
		{"a picture's port", dingtalkFile(`"picture_hosts": [^"img.example.com:443"]`), "dingtalk.picture_hosts[0]: got"},
		{"all pictures", dingtalkFile(`"picture_hosts": [^"*"]`), "dingtalk.picture_hosts[0]: got"},

		{"path of chats for embeddings", embeddingsFile(`"model": "m", "base_url": ^"https://h/v1/chat/completions"`), "agent.memory.embeddings.base_url: got an address that ends in /chat/completions"},
		{"first token after the end", modelFile(`"timeout": "20s", "first_token_timeout": ^"40s"`), "llm.models[0].first_token_timeout: got 40s, want at most timeout (20s)"},
		{"timeout in milliseconds", modelFile(`"timeout": ^120000`), "llm.models[0].timeout: got 33h20m, want at most agent.turn_timeout (5m)"},

		{"gather in milliseconds", agentFile(`"gather": ^100`), "agent.gather: got 1m40s, want 0s to 5s"},
		{"all administrators", agentFile(`"admins": [^"*"]`), `agent.admins[0]: got "*"` + staff},
		{"two administrators", agentFile(`"admins": [^"staff01,staff02"]`), `agent.admins[0]: got "staff01,staff02"` + staff},
		{"zone with an offset", agentFile(`"timezone": ^"UTC+8"`), `agent.timezone: got "UTC+8", want the name of a time zone`},

		{"share in percent", compactionFile(`"max_history_share": ^50`), "agent.compaction.max_history_share: got 50, want"},
		{"ratio in percent", compactionFile(`"flush_ratio": ^90`), "agent.compaction.flush_ratio: got 90, want"},
		{"weight in percent", embeddingsFile(`"weight": ^50`), "agent.memory.embeddings.weight: got 50, want 0 to 1"},

		{"every group's settings", groupsFile(`"*": ^{"language": "en"}`), `groups."*": got "*"` + chat},
		{"two groups", groupsFile(`"cidA,cidB": ^{"language": "en"}`), `groups."cidA,cidB": got "cidA,cidB"` + chat},
		{"all administer a group", groupsFile(`"a": {"admins": [^"*"]}`), `groups.a.admins[0]: got "*"` + staff},
		{"a pattern of groups", `{"access": {"groups": [^"cid*"]}}`, `access.groups[0]: got "cid*"` + chat},
		{"people by a comma", `{"access": {"people": [^"staff01, staff02"]}}`, "access.people[0]: got"},
		{"a pattern of people", `{"access": {"people": [^"staff*"]}}`, `access.people[0]: got "staff*"` + staff},

		{"password as a variable", `{"database": {"url": ^"postgres://u:$DB_PASSWORD@h/d"}}`, "database.url: got the name of a variable in another form, want ${NAME}"},
		{"address with a blank", `{"database": {"url": ^" postgres://h/d"}}`, "database.url: got an address with blanks around it"},
		{"address of another driver", `{"database": {"url": ^"jdbc:postgresql://h/d"}}`, "database.url: got an address that does not begin with postgres://"},
		{"listen as an address", `{"admin": {"listen": ^"http://127.0.0.1:8080"}}`, "admin.listen: got"},
		{"listen with a blank", `{"admin": {"listen": ^"127.0.0.1 :8080"}}`, `admin.listen: got "127.0.0.1 :8080", want host:port`},
		{"listen with a path", `{"admin": {"listen": ^"127.0.0.1/x:8080"}}`, "admin.listen: got"},
		{"callback elsewhere", `{"admin": {"dingtalk_login": {"redirect_uri": ^"https://ebb.example.com/callback"}}}`, "admin.dingtalk_login.redirect_uri: got"},
		{"quiet hours in words", `{"schedule": {"quiet_hours": ^"10pm-8am"}}`, `schedule.quiet_hours: got "10pm-8am", want hours such as`},
		{"quiet hours without an end", `{"schedule": {"quiet_hours": ^"22:00-22:00"}}`, "schedule.quiet_hours: got"},
		{"drain in milliseconds", `{"shutdown": {"drain": ^20000}}`, "shutdown.drain: drain 5h33m20s and"},
		{"retention in words", `{"retention": {"events": ^"30 days"}}`, `retention.events: got "30 days", want a duration such as`},
		{"level in capitals", `{"log": {"level": ^"INFO"}}`, `log.level: got "INFO", want "trace" or`},
	} {
		t.Run(tt.name, tt.run)
	}
}

// Legal values that do something else than they look like are warned of at their place; others are not.
func TestMistakesAreWarnedOf(t *testing.T) {
	t.Parallel()
	const admins = `"agent": {"admins": ["boss"]}`
	for _, tt := range []errorCase{
		{"no people", `{` + admins + `, "access": {"people": ^[]}}`, `access.people: an empty list serves agent.admins alone; ["*"] serves all`},
		{"no groups", `{"access": {"groups": ^[]}}`, `access.groups: an empty list serves no group, private chats alone; ["*"] serves all`},
		{"ids beside all", `{"access": {"people": ["*", ^"staff01"]}}`, `access.people[1]: does nothing beside "*"`},
		{"served and denied", `{"access": {"people": [^"staff01"], "deny": ["staff01"]}}`, "access.people[0]: does nothing: access.deny has the id too"},
		{"denied administrator", `{` + admins + `, "access": {"deny": [^"boss"]}}`, "access.deny[0]: does nothing: the id is one of agent.admins"},
		{"no tools", groupsFile(`"a": {"tools": ^[]}`), "groups.a.tools: an empty list allows all tools"},
		{"administrators without a login", groupsFile(`"a": {"admins": ^["staff01"]}`), "groups.a.admins: does nothing without admin.dingtalk_login.redirect_uri"},
		{"login for no one", `{"admin": {"dingtalk_login": {"redirect_uri": ^"https://h` + LoginPath + `"}}}`, "admin.dingtalk_login.redirect_uri: admits no one"},
		{"page without a login", `{"admin": {"dingtalk_login": {"authorize_url": ^"https://h/auth"}}}`, "admin.dingtalk_login.authorize_url: does nothing without a redirect_uri"},
		{"token without a listener", `{"admin": {"listen": "", "token": ^"0123456789abcdef"}}`, "admin.token: does nothing without admin.listen"},
		{"template without cards", dingtalkFile(`"card_template_id": ^"abc.schema"`), `dingtalk.card_template_id: does nothing without dingtalk.reply "card"`},
		{"stream without cards", dingtalkFile(`"card_stream": ^"always"`), "dingtalk.card_stream: does nothing without"},
		{"reasoning without cards", dingtalkFile(`"card_reasoning": ^true`), "dingtalk.card_reasoning: does nothing without"},
		{"replies over the limit", dingtalkFile(`"replies_per_minute": ^100`), "dingtalk.replies_per_minute: more than the 20 that DingTalk's webhooks accept"},
		{"pictures of a whole domain", dingtalkFile(`"picture_hosts": [^"*.com"]`), "dingtalk.picture_hosts[0]: allows all hosts of com"},
		{"key of no endpoint", embeddingsFile(`"api_key": ^"k"`), "agent.memory.embeddings.api_key: does nothing without a base_url"},
		{"dimensions of no endpoint", embeddingsFile(`"dimensions": ^1024`), "agent.memory.embeddings.dimensions: does nothing without a base_url"},
		{"weight of no endpoint", embeddingsFile(`"weight": ^0.9`), "agent.memory.embeddings.weight: does nothing without a base_url"},
		{"recall off", memoryFile(`"recall": "off", "recall_tokens": ^900`), `agent.memory.recall_tokens: does nothing with recall "off"`},
		{"candidates of each turn", memoryFile(`"extract": "every_turn", "candidates": ^5`), `agent.memory.candidates: does nothing with extract "every_turn"`},
		{"recall over its room", agentFile(`"memory": {"recall_tokens": ^3000}, "compaction": {"context_window": 16000, "auto_compact_threshold": 8000, "reserve_tokens": 6000}`), "agent.memory.recall_tokens: the window has room for 1250"},
		{"pinned over its room", agentFile(`"memory": {"pinned_tokens": ^3000}, "compaction": {"context_window": 16000, "auto_compact_threshold": 8400, "reserve_tokens": 6000}`), "agent.memory.pinned_tokens: the window has room for 700"},
		{"merged one by one", agentFile(`"merge_pending": false, "max_merged": ^5`), "agent.max_merged: does nothing without agent.merge_pending"},
		{"hours of no reminders", `{"schedule": {"enabled": false, "quiet_hours": ^"22:00-08:00"}}`, "schedule.quiet_hours: does nothing without schedule.enabled"},
		{"late note", agentFile(`"busy_note": ^"10m"`), "agent.busy_note: does nothing: a turn ends after agent.turn_timeout (5m)"},
		{"stale within a turn", agentFile(`"stale_after": ^"1m"`), "agent.stale_after: less than agent.turn_timeout (5m)"},
		{"long lease", `{"agent": {"stale_after": "5m"}, "cluster": {"lease_ttl": ^"6m"}}`, "cluster.lease_ttl: no less than agent.stale_after (5m)"},
		{"tasks that go", `{"agent": {"memory": {"task_ttl": ^"60d"}}, "retention": {"memories": "30d"}}`, "agent.memory.task_ttl: more than retention.memories (720h)"},
		{"days as a number", `{"retention": {"events": ^30}}`, `retention.events: deletes after 30s; days are "30d"`},
		{"days of the audit", `{"retention": {"audit": ^365}}`, `retention.audit: deletes after 6m5s; days are "30d"`},
		{"zone of the other side", agentFile(`"timezone": ^"Etc/GMT+8"`), "agent.timezone: has the opposite sign"},
		{"price of the cache", modelFile(`"api_key": "", "price_in": 1, "price_cached": ^2`), "llm.models[0].price_cached: more than price_in (1)"},
		{"price of the cache alone", modelFile(`"api_key": "", "price_cached": ^2`), "llm.models[0].price_cached: more than price_in (0)"},
		{"price of the output alone", modelFile(`"api_key": "", "price_out": ^8`), "llm.models[0].price_out: without price_in, input costs nothing"},
		{"address without a version", `{"llm": {"models": [{"base_url": ^"https://api.openai.com", "model": "m", "api_key": ""}]}}`, "llm.models[0].base_url: has no version, want https://api.openai.com/v1"},
		{"embeddings without a version", embeddingsFile(`"model": "m", "base_url": ^"https://dashscope.aliyuncs.com/"`), "agent.memory.embeddings.base_url: has no version"},
		{"person over a group", agentFile(`"limits": {"person_turns_per_minute": ^10, "group_turns_per_minute": 5}`), "agent.limits.person_turns_per_minute: more than group_turns_per_minute (5)"},
		{"outsiders over a group", agentFile(`"limits": {"unidentified_turns_per_hour": ^100, "group_turns_per_minute": 1}`), "agent.limits.unidentified_turns_per_hour: more than group_turns_per_minute (1) allows"},
		{"thousands of tokens", agentFile(`"limits": {"person_tokens_per_day": ^50}`), "agent.limits.person_tokens_per_day: less than one question takes"},
		{"thousands of tokens for all", agentFile(`"limits": {"tokens_per_day": ^500}`), "agent.limits.tokens_per_day: less than one question takes"},
		{"folder of no server", `{"database": {"url": "postgres://h/d", "dir": ^"/var/lib/ebb"}}`, "database.dir: does nothing with database.url"},
		{"variable of a database", `{"database": {"url": ^"${NO_SUCH}"}}`, "database.url: NO_SUCH is not set in the environment"},
		{"variable of a token", `{"admin": {"token": ^"${NO_SUCH}"}}`, "admin.token: NO_SUCH is not set in the environment"},
		{"variable of a template", dingtalkFile(`"card_template_id": ^"${NO_SUCH}"`), "dingtalk.card_template_id: NO_SUCH is not set in the environment"},
		{"variable of a prompt", agentFile(`"prompt": ^"You serve ${NO_SUCH}."`), "agent.prompt: NO_SUCH is not set in the environment"},
	} {
		t.Run(tt.name, tt.isWarnedOf)
	}
	for _, text := range []string{
		`{"access": {"groups": ["*"], "people": ["*"], "deny": []}}`, `{` + admins + `, "access": {"groups": ["` + longID + `"], "people": ["boss", "$:LWCP_v1:$a=="], "deny": ["` + longID + `=", "staff01"]}}`,
		dingtalkFile(`"replies_per_minute": 0, "picture_hosts": ["*.example.com", "img.example.com"]`), dingtalkFile(`"reply": "card", "card_template_id": "0a1b-2c.schema", "card_content_key": "内容"`),
		modelFile(`"api_key": "EMPTY", "timeout": "20s"`), modelFile(`"api_key": "none", "first_token_timeout": "2m", "price_in": 2, "price_cached": 0.2, "price_out": 8`),
		`{"llm": {"models": [{"base_url": "https://api.deepseek.com", "model": "deepseek-chat", "api_key": "k"}]}}`, agentFile(`"limits": {"person_turns_per_minute": 5, "group_turns_per_minute": 10}`),
		`{"retention": {"events": "180d", "audit": "0"}}`, agentFile(`"limits": {"person_tokens_per_day": 100000}`), agentFile(`"limits": {"tokens_per_day": 100000, "person_tokens_per_day": 100000}`),
		agentFile(`"turn_timeout": "20s", "busy_note": "0s"`), `{"admin": {"listen": "[::1]:8080", "token": "${NO_SUCH:-}"}, "database": {"url": "${NO_SUCH:-}"}}`, `{"admin": {"listen": ":8080"}}`,
	} {
		if said := mustParse(t, text).Warnings; len(said) > 0 {
			t.Errorf("%s: warned %q", text, said)
		}
	}
}

// isWarnedOf checks for one warning, at the mark.
func (tt errorCase) isWarnedOf(t *testing.T) {
	t.Parallel()
	before, after, _ := strings.Cut(tt.text, "^")
	said := mustParse(t, before+after).Warnings
	col := 1 + len(before) - strings.LastIndex(before, "\n") - 1
	if want := fmt.Sprintf("test.jsonc:1:%d: %s", col, tt.want); len(said) != 1 || !strings.HasPrefix(said[0], want) {
		t.Errorf("warned %q, want %s", said, want)
	}
}

// Probable mistakes that can work are warned of at their place, and no more.
func TestUnlikelyValuesAreWarnedOf(t *testing.T) {
	t.Parallel()
	const admins = `"agent": {"admins": ["boss"]}`
	for _, tt := range []errorCase{
		{"no one", `{"access": {"people": ^[]}}`, "access.people: an empty list serves no one, as agent.admins is empty too"},
		{"all denied", `{` + admins + `, "access": {"deny": [^"*"]}}`, `access.deny[0]: "*" serves agent.admins alone`},
		{"a group as administrator", agentFile(`"admins": [^"` + longID + `"]`), `agent.admins[0]: "` + longID + `" looks like the id of a conversation, want a staff id`},
		{"a group among people", `{"access": {"people": [^"` + longID + `"]}}`, `access.people[0]: "` + longID + `" looks like the id of a conversation`},
		{"a sender among groups", `{"access": {"groups": [^"$:LWCP_v1:$abc"]}}`, `access.groups[0]: "$:LWCP_v1:$abc" looks like the id of a sender`},
		{"id for secret", dingtalkFile(`"client_id": "ding1", "client_secret": ^"ding1"`), "dingtalk.client_secret: is the same as dingtalk.client_id"},
		{"key of an example", modelFile(`"api_key": ^"<your-api-key>"`), "llm.models[0].api_key: is the text of an example, want the key of the endpoint"},
		{"key of another example", modelFile(`"api_key": ^"sk-xxxx"`), "llm.models[0].api_key: is the text of an example"},
		{"key as another program shows it", modelFile(`"api_key": ^"sk-1***9"`), "llm.models[0].api_key: is the text of an example"},
		{"secret of an example", dingtalkFile(`"client_secret": ^"your-client-secret"`), "dingtalk.client_secret: is the text of an example"},
		{"viewers' token of an example", `{"admin": {"viewer_token": ^"<a-token-of-viewers>"}}`, "admin.viewer_token: is the text of an example"},
		{"key of embeddings with Bearer", embeddingsFile(`"model": "m", "base_url": "https://h/v1", "api_key": ^"Bearer hunter2"`), "agent.memory.embeddings.api_key: has blanks"},
		{"token with a line break", `{"admin": {"token": ^"hunter2hunter2hunter2\n"}}`, "admin.token: has blanks around it"},
		{"template with blanks", dingtalkFile(`"reply": "card", "card_template_id": ^"abc.schema "`), `dingtalk.card_template_id: "abc.schema " does not look like the id`},
		{"variable in braces", dingtalkFile(`"reply": "card", "card_template_id": "abc", "card_content_key": ^"$${content}"`), `dingtalk.card_content_key: "${content}" does not look like a variable`},
		{"DingTalk in the clear", dingtalkFile(`"api_base": ^"http://api.dingtalk.com"`), "dingtalk.api_base: sends secrets in the clear"},
		{"path of completions", modelAt(`^"https://h/v1/completions"`), "llm.models[0].base_url: ends in /completions; if that is a function, want the part before it"},
		{"path of messages", modelAt(`^"https://h/v1/messages/"`), "llm.models[0].base_url: ends in /messages"},
		{"model with a blank", `{"llm": {"models": [{"base_url": "https://h/v1", "api_key": "", "model": ^"qwen-plus "}]}}`, `llm.models[0].model: has blanks at its ends`},
		{"first token in milliseconds", modelFile(`"api_key": "", "first_token_timeout": ^30000`), "llm.models[0].first_token_timeout: does nothing: an attempt ends after timeout (2m)"},
		{"name as a mention", agentFile(`"name": ^"@Ebb"`), `agent.name: "@Ebb" begins with @`},
		{"name with a line break", agentFile(`"name": ^"Ebb\n"`), "agent.name: "},
		{"prompt over the window", agentFile(`"compaction": {"context_window": 16000, "auto_compact_threshold": 8400, "reserve_tokens": 6000}, "prompt": ^"` + strings.Repeat("说明", 20001) + `"`), "agent.prompt: has 40002 characters, and the window has room for about 40000"},
		{"turn in milliseconds", agentFile(`"turn_timeout": ^300000`), "agent.turn_timeout: more than 4h: a figure without a unit is a number of seconds"},
		{"deadline in milliseconds", compactionFile(`"deadline": ^120000`), "agent.compaction.deadline: more than 4h"},
		{"recall in milliseconds", memoryFile(`"recall_timeout": ^300`), "agent.memory.recall_timeout: more than 1m"},
		{"lease in milliseconds", `{"cluster": {"lease_ttl": ^5000}}`, "cluster.lease_ttl: no less than agent.stale_after"},
		{"person over all", agentFile(`"limits": {"tokens_per_day": 1000000, "person_tokens_per_day": ^2000000}`), "agent.limits.person_tokens_per_day: more than tokens_per_day (1000000), which is for all"},
		{"conversation over all", agentFile(`"limits": {"tokens_per_day": 1000000}, "compaction": {"daily_tokens": ^3000000}`), "agent.compaction.daily_tokens: more than agent.limits.tokens_per_day (1000000)"},
		{"group over all", `{"agent": {"limits": {"tokens_per_day": 1000000}}, "groups": {"a": {"compaction": {"daily_tokens": ^3000000}}}}`, "groups.a.compaction.daily_tokens: more than agent.limits.tokens_per_day"},
		{"inline over the turn", agentFile(`"turn_timeout": "10s", "compaction": {"inline_deadline": ^"15s"}`), "agent.compaction.inline_deadline: more than agent.turn_timeout (10s)"},
		{"inline over the background", compactionFile(`"deadline": "30s", "inline_deadline": ^"60s"`), "agent.compaction.inline_deadline: more than deadline (30s)"},
		{"pooler twice", `{"database": {"pooler": "transaction", "url": "postgres://h:6432/d", "direct_url": ^"postgres://h:6432/d"}}`, "database.direct_url: is the same as database.url"},
	} {
		t.Run(tt.name, tt.isWarnedOf)
	}
}

// A printed configuration loads without new mistakes, as far as its secrets are not printed.
func TestPrintedValuesAreNoMistakes(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"{}", modelFile(`"api_key": "", "timeout": "20s"`), agentFile(`"turn_timeout": "20s"`), agentFile(`"limits": {"tokens_per_day": 100000}`), compactionFile(`"deadline": "10s"`),
		agentFile(`"turn_timeout": "10s"`), groupsFile(`"a": {}, "b": {"language": "en"}`), `{"cluster": {"lease_ttl": "1s"}, "schedule": {"enabled": false}}`, memoryFile(`"recall": "off", "extract": "every_turn"`),
	} {
		first := mustParse(t, text)
		out, err := first.JSON()
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseConfig("printed.json", out, env(), NeedNothing)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if len(again.Warnings) > len(first.Warnings) {
			t.Errorf("%s: warned %q, and printed %q", text, first.Warnings, again.Warnings)
		}
	}
}
