package main

import (
	"cmp"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// provider is a kind of endpoint, by the behaviours of the scripted model.
type provider struct {
	name, behaviours string
	tool             string // the scripted model's words about a request to remember; empty: it saw the tool's result
	talk             int    // messages; 0: 45. More where reports are no measurement: our own counts are lower
	honest           string // the sentence that people read as long as it behaves so; empty: they read right answers
}

var providers = []provider{
	{name: "ordinary"},
	{name: "gemma", behaviours: "gemma", tool: "收到"},
	{name: "mistral", behaviours: "alternating_roles id_format"},
	{name: "deepseek", behaviours: "content_required max_output:4096"},
	{name: "kimi", behaviours: "unique_ids content_words"},
	{name: "vllm", behaviours: "strict_fields only_user_last"},
	{name: "zhipu", behaviours: "alternating_roles_zh max_output_zh:4096"},
	{name: "ollama", behaviours: "no_tools cuts_silently:6000", tool: "收到", talk: 90},
	{name: "old_proxy", behaviours: "no_stream_options no_name_field"},
	{name: "no_stream", behaviours: "no_stream plain_schemas"},
	{name: "no_tool_role", behaviours: "no_tool_role", tool: "收到"},
	{name: "parts", behaviours: "content_parts"},
	{name: "text_calls", behaviours: "text_calls:hermes"},
	{name: "gpt_oss", behaviours: "harmony:full template_end:<|end|><|start|>user<|message|>"},
	{name: "talkative", behaviours: "labels speaks_for_others", talk: 90},
	{name: "pictures", behaviours: "evil_picture html"},
	{name: "summary_reply", behaviours: "summary_reply"},
	{name: "other_ends", behaviours: "end_words:end_turn"},
	{name: "huge_reports", behaviours: "reports_huge", talk: 90},
	{name: "no_reports", behaviours: "reports_nothing", talk: 90},
	{name: "small_window", behaviours: "overflow_unknown:60000"},
	{name: "inspects", behaviours: "refuses_word:敏感词甲"},
	{name: "network_error", behaviours: "network_error_end", honest: "没能完整收到"},
	{name: "no_money", behaviours: "money", honest: "请联系管理员"},
	{name: "busy", behaviours: "busy_zh", honest: "请稍后再试"},
}

// TestProviders plays a conversation with a tool, a flush, a compaction and a recall through each provider. Each one ends with right
// answers, or with one honest sentence, and with right answers once the provider is well.
func TestProviders(t *testing.T) {
	dir := t.TempDir()
	for _, p := range providers {
		script := "conversation.txtar"
		if p.honest != "" {
			script = "honest.txtar"
		}
		b, err := os.ReadFile(filepath.Join("testdata", "provider", script))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.NewReplacer("BEHAVIOURS", p.behaviours, "TOOL", cmp.Or(p.tool, "记住了"), "HONEST", p.honest,
			"MESSAGES", strconv.Itoa(cmp.Or(p.talk, 45))).Replace(string(b))
		if err := os.WriteFile(filepath.Join(dir, p.name+".txtar"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	testscript.Run(t, testscript.Params{Dir: dir, Setup: setUp, Cmds: scriptCommands()})
}
