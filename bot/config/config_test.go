package config

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tailscale/hujson"

	"ebb/bot/config/strict"
)

// mustParse loads a config from its text, which nothing may be wrong with.
func mustParse(t *testing.T, text string) *Config {
	t.Helper()
	cfg, err := parseConfig("test.jsonc", []byte(text), env(), NeedNothing)
	if err != nil {
		t.Fatalf("loading %s: %v", text, err)
	}
	return cfg
}

func TestReferenceEqualsDefaults(t *testing.T) {
	t.Parallel()
	got, err := Load(referencePath, env(), NeedNothing)
	if err != nil {
		t.Fatalf("loading the reference: %v", err)
	}
	if want := Default(); !reflect.DeepEqual(got, want) {
		t.Errorf("the reference is\n%+v\nthe defaults are\n%+v", got, want)
	}
	withoutFile, err := Load("", env(), NeedNothing)
	if err != nil || !reflect.DeepEqual(withoutFile, got) {
		t.Errorf("without a file: %+v, %v\nwant the reference: %+v", withoutFile, err, got)
	}
}

// An empty file is as good as the reference, in the environment too: a key left out means what the reference says.
func TestReferenceEqualsEmptyFile(t *testing.T) {
	t.Parallel()
	vars := env("DINGTALK_CLIENT_ID", "a", "DINGTALK_CLIENT_SECRET", "b", "LLM_API_KEY", "c", "DATABASE_URL", "postgres://h/d", "ADMIN_TOKEN", "0123456789abcdef")
	reference, err := Load(referencePath, vars, NeedServe)
	if err != nil {
		t.Fatalf("loading the reference: %v", err)
	}
	empty, err := parseConfig("empty.jsonc", []byte("{}"), vars, NeedServe)
	if err != nil {
		t.Fatalf("loading an empty config: %v", err)
	}
	if !reflect.DeepEqual(reference, empty) {
		t.Errorf("the reference is\n%+v\nan empty file is\n%+v", reference, empty)
	}
	if got := reference.LLM.Models[0].APIKey.Reveal(); got != "c" {
		t.Errorf("the key of the model is %q, want the variable's value", got)
	}
}

func TestReferenceNamesEveryField(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(referencePath)
	if err != nil {
		t.Fatal(err)
	}
	root, err := hujson.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, pointer := range fieldPointers(reflect.TypeFor[Config](), "") {
		of, field, isServer := strings.Cut(pointer, "/tools/mcp/0/") // the list is empty: a comment names the keys
		if isServer && of == "" && regexp.MustCompile(`(?m)^  //   (?:\w+, )?`+field+`(?:, \w+)? `).Match(data) {
			continue
		}
		if root.Find(pointer) == nil {
			t.Errorf("the reference does not name %s", pointer)
		}
	}
}

// fieldPointers lists the JSON pointer of every field of a config type, of the first element for a list of structs.
func fieldPointers(typ reflect.Type, at string) []string {
	switch {
	case typ == robotsType: // the reference has one
		return fieldPointers(typ.Elem(), at)
	case typ.Kind() == reflect.Slice && typ.Elem().Kind() == reflect.Struct:
		return fieldPointers(typ.Elem(), at+"/0")
	case typ.Kind() != reflect.Struct:
		return []string{at}
	}
	var out []string
	set := strict.FieldsOf(typ)
	for _, name := range set.Names {
		out = append(out, fieldPointers(typ.FieldByIndex(set.Index[name]).Type, at+"/"+name)...)
	}
	return out
}

// A field without a key could never be set from a file.
func TestEveryFieldHasAKey(t *testing.T) {
	t.Parallel()
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		for typ.Kind() == reflect.Slice || typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct {
			return
		}
		for f := range typ.Fields() {
			if f.Tag.Get("json") == "" && !f.Anonymous && f.IsExported() {
				t.Errorf("%s.%s has no key", typ, f.Name)
			}
			walk(f.Type)
		}
	}
	walk(reflect.TypeFor[Config]())
}

func TestLoadValues(t *testing.T) {
	t.Parallel()
	cfg := mustParse(t, `// a comment
	{
		"llm": {"default": "b", "models": [
			{"name": "a", "base_url": "http://127.0.0.1:1/v1", "model": "m", "timeout": 1.5, "temperature": 0.2},
			{"name": "b", "base_url": "https://h/v1", "api_key": "", "model": "n", "max_output": 100, "retries": 0}, // trailing
		]},
		"agent": {"merge_pending": false, "stale_after": "1h", "admins": ["m1", "m2"], "prompt": "写作 $${NAME}"},
		"database": {"url": "postgres://u:p@h/d", "migrate": false,}, /* and trailing commas */
		"admin": {"listen": ""},
	}`)
	if got := cfg.LLM.Models[0].Timeout; got != 1500*time.Millisecond {
		t.Errorf("timeout 1.5 is %v, want 1.5s", got)
	}
	if got := cfg.LLM.Models[0].Temperature; got == nil || *got != 0.2 {
		t.Errorf("temperature is %v, want 0.2", got)
	}
	b := cfg.LLM.Models[1]
	if cfg.LLM.Default != "b" || b.Name != "b" || b.MaxOutput != 100 || b.Retries != 0 || b.Timeout != 120*time.Second {
		t.Errorf("the default model is %+v, want b with what it sets, and the defaults for the rest", b)
	}
	if cfg.Agent.MergePending || cfg.Agent.StaleAfter != time.Hour || len(cfg.Agent.Admins) != 2 || cfg.Database.Migrate || cfg.Admin.Listen != "" {
		t.Errorf("values of the file were lost: %+v %+v", cfg.Agent, cfg.Database)
	}
	if want := "写作 ${NAME}"; cfg.Agent.Prompt != want {
		t.Errorf("the prompt is %q, want %q", cfg.Agent.Prompt, want)
	}
	if cfg.Agent.Name != "Ebb" || cfg.Agent.Compaction.ContextWindow != 128000 {
		t.Errorf("what the file leaves out is not the default: %+v", cfg.Agent)
	}
}

// checkBuilt checks a configuration built in code, as [Load] checks a file.
func checkBuilt(c *Config) error {
	src := newSource("", nil, func(string) string { return "" })
	c.check(src, NeedNothing)
	return src.Err()
}

func TestSmallWindowLowersMaxOutput(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ reserve, maxOutput int }{
		{20000, 4096}, {5120, 4096}, {5119, 4095}, {2000, 976}, {1100, 550}, {500, 250}, {1, 1},
	} {
		cfg := Default()
		cfg.Agent.Compaction.AutoCompactThreshold = 4000
		cfg.Agent.Compaction.ContextWindow = 64000
		cfg.Agent.Compaction.ReserveTokens = tt.reserve
		if err := checkBuilt(cfg); err != nil {
			t.Fatalf("reserve %d: %v", tt.reserve, err)
		}
		if got := cfg.LLM.Models[0].MaxOutput; got != tt.maxOutput {
			t.Errorf("reserve %d: max_output is %d, want %d", tt.reserve, got, tt.maxOutput)
		}
		if warned := len(cfg.Warnings) == 1; warned != (tt.maxOutput < 4096) {
			t.Errorf("reserve %d: warnings %q", tt.reserve, cfg.Warnings)
		}
	}
	cfg := mustParse(t, "{\n \"agent\": {\"compaction\": {\"auto_compact_threshold\": 15000,\n \"context_window\": 16000, \"reserve_tokens\": 2000}}}")
	got := strings.Join(cfg.Warnings, "\n")
	for _, want := range []string{
		"llm.models[0].max_output: lowered from 4096 to 976",
		"test.jsonc:2:53: agent.compaction.auto_compact_threshold: 15000 is more than context_window - reserve_tokens (14000)",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("warnings are %q, want %q", got, want)
		}
	}
}

// A share that keeps no more than a smaller one does is warned of where it stands in the file, and only there.
func TestShareWithoutEffectIsWarnedOf(t *testing.T) {
	t.Parallel()
	for share, want := range map[string]string{
		`"max_history_share": 0.6, `: "test.jsonc:1:48: agent.compaction.max_history_share: 0.6 keeps no more than 0.5001 does",
		`"max_history_share": 0.5, `: "",
		``:                           "",
	} {
		cfg := mustParse(t, `{"agent": {"compaction": {`+share+`"auto_compact_threshold": 80000}}}`)
		if got := strings.Join(cfg.Warnings, "\n"); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: warnings are %q, want %q", share, got, want)
		}
	}
}

func TestJSONIsLoadable(t *testing.T) {
	t.Parallel()
	cfg := mustParse(t, `{"llm": {"models": [{"name": "main", "api_key": "", "base_url": "http://h/v1", "model": "m<2>", "temperature": 0.7}]},
		"agent": {"admins": ["a", "b"], "stale_after": "90m", "turn_timeout": 0.25}}`)
	out, err := cfg.JSON()
	if err != nil {
		t.Fatal(err)
	}
	again, err := parseConfig("printed.json", out, env(), NeedNothing)
	if err != nil {
		t.Fatalf("loading what was printed: %v\n%s", err, out)
	}
	if want := cfg.inForce(); !reflect.DeepEqual(*again, want) {
		t.Errorf("printed and loaded again: %+v\nwant %+v", *again, want)
	}
	if !json.Valid(out) || !strings.Contains(string(out), `"m<2>"`) || !strings.Contains(string(out), `"stale_after": "1h30m"`) {
		t.Errorf("printed as\n%s", out)
	}
}

func TestMissingFile(t *testing.T) {
	t.Parallel()
	_, err := Load(filepath.Join(t.TempDir(), "none.jsonc"), env(), NeedNothing)
	if _, ok := errors.AsType[*strict.Error](err); !ok {
		t.Fatalf("got %v, want an Error", err)
	}
	for _, want := range []string{"none.jsonc: ", "no such file", "--config"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

// The example configuration has to be right without an edit, but for the credentials.
func TestDeployConfig(t *testing.T) {
	t.Parallel()
	getenv := func(name string) string {
		return map[string]string{"DATABASE_URL": "postgres://u:p@h/d", "ADMIN_TOKEN": "0123456789abcdef0123"}[name] + credentials()(name)
	}
	cfg, err := Load("../../deploy/config.jsonc", getenv, NeedServe)
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.Warnings) > 0 || cfg.Database.URL == "" || cfg.Admin.Token == "" {
		t.Errorf("deploy/config.jsonc: database %q, token %q, warnings %q", cfg.Database.URL, cfg.Admin.Token, cfg.Warnings)
	}
	yaml, err := os.ReadFile("../../deploy/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(yaml), "terminationGracePeriodSeconds:")
	var grace int
	if !found || json.Unmarshal([]byte(strings.Fields(after)[0]), &grace) != nil {
		t.Fatal("deploy/deployment.yaml has no terminationGracePeriodSeconds")
	}
	// Twice, because intake ends before them and cleaning up comes after them, each with limits of its own.
	if need := 2 * (cfg.Shutdown.Drain + cfg.Shutdown.Flush); time.Duration(grace)*time.Second < need {
		t.Errorf("the deployment kills after %d s, want %v at least", grace, need)
	}
}
