package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A secret may be a file, whose last line break is no part of it. It is read at each load.
func TestSecretsFromFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	text := []byte(`{"llm": {"models": [{"name": "main", "base_url": "http://127.0.0.1/v1", "model": "m", "api_key": "${file:` + path + `}"}]}}`)
	for content, want := range map[string]string{"sk-one\n": "sk-one", "sk-two": "sk-two", "sk-${x}\r\n": "sk-${x}"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := parseConfig("f.jsonc", text, env(), NeedNothing)
		if err != nil {
			t.Fatal(err)
		}
		if got := cfg.LLM.Models[0].APIKey.Reveal(); got != want {
			t.Errorf("the key is %q, want %q", got, want)
		}
	}
	for _, content := range []string{"", "\n", "secret \xff", strings.Repeat("secret", maxSecret)} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := parseConfig("f.jsonc", text, env(), NeedNothing)
		if err == nil || !strings.Contains(err.Error(), "f.jsonc:1:98: llm.models[0].api_key: reading a secret: "+path) || strings.Contains(err.Error(), "secretsecret") {
			t.Errorf("a file of %d bytes: %v", len(content), err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := parseConfig("f.jsonc", text, env(), NeedNothing); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("without the file: %v", err)
	}
}
