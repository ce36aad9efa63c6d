package setup

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ebb/bot/config"
)

// person answers questions by the words in them, and notes which were hidden.
type person struct {
	answers map[string][]string
	hidden  map[string]bool
	asked   []string
}

func (p *person) Ask(_ context.Context, question string, hidden bool) (string, error) {
	p.asked = append(p.asked, question)
	for words, answers := range p.answers {
		if !strings.Contains(question, words) {
			continue
		}
		if p.hidden == nil {
			p.hidden = map[string]bool{}
		}
		p.hidden[words] = hidden
		if len(answers) == 0 {
			return "", nil
		}
		p.answers[words] = answers[1:]
		return answers[0], nil
	}
	return "", nil
}

func variables(all map[string]string) func(string) string {
	return func(name string) string { return all[name] }
}

// prepare returns a set-up in a folder of its own, and its output.
func prepare(t *testing.T) (*Setup, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	return &Setup{Path: filepath.Join(t.TempDir(), "mine.jsonc"), Getenv: variables(nil), Out: &out, Ask: NoTerminal{}}, &out
}

// load reads the written configuration as serve would.
func load(t *testing.T, s *Setup) (*config.Config, string) {
	t.Helper()
	text, err := os.ReadFile(s.Path)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(s.Path, s.Getenv, config.NeedServe)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return cfg, string(text)
}

// A person on an empty machine answers all questions. Secrets are asked for without a sight of them, are in files that only their owner
// reads, and are neither in the configuration nor in the output.
func TestAllIsAskedFor(t *testing.T) {
	t.Parallel()
	s, out := prepare(t)
	p := &person{answers: map[string][]string{
		"Client ID": {"", " dingabc "}, "Client Secret": {`hunter2"${X}`}, "API key": {"sk-hunter2"}, "PostgreSQL": {"postgres://u:hunter2@h/d"},
	}}
	s.Ask = p
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	cfg, text := load(t, s)
	if cfg.DingTalk[0].ClientID != "dingabc" || cfg.DingTalk[0].ClientSecret.Reveal() != `hunter2"${X}` || cfg.LLM.Models[0].APIKey.Reveal() != "sk-hunter2" ||
		cfg.Database.URL.Reveal() != "postgres://u:hunter2@h/d" || cfg.LLM.Models[0].Model != "qwen-plus" || len(cfg.Warnings) > 0 {
		t.Errorf("the configuration is\n%s\nwarnings %q", text, cfg.Warnings)
	}
	if n := strings.Count(text, "\n"); n > 12 || !strings.Contains(text, "// ") || strings.Contains(text+out.String(), "hunter2") {
		t.Errorf("%d lines:\n%s\n%s", n, text, out)
	}
	for words, hidden := range map[string]bool{"Client ID": false, "Client Secret": true, "API key": true, "PostgreSQL": true} {
		if p.hidden[words] != hidden {
			t.Errorf("%s: hidden %t, want %t", words, p.hidden[words], hidden)
		}
	}
	for path, mode := range map[string]fs.FileMode{"secrets": 0o700 | fs.ModeDir, "secrets/llm_api_key": 0o600, "secrets/dingtalk_client_secret": 0o600} {
		info, err := os.Stat(filepath.Join(filepath.Dir(s.Path), path))
		if err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v, want %v", path, info, err, mode)
		}
	}
}

// A second run writes over nothing without --force, and asks for secrets of a run that was cut off only with it.
func TestNothingIsWrittenOver(t *testing.T) {
	t.Parallel()
	s, _ := prepare(t)
	first := &person{answers: map[string][]string{"Client ID": {"dingabc"}, "Client Secret": {"s1"}, "API key": {"k1"}}}
	s.Ask = first
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Ask = &person{answers: map[string][]string{"Client ID": {"dingother"}}}
	if err := s.Run(t.Context()); !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), s.Path) {
		t.Fatalf("a second run: %v", err)
	}
	if err := os.Remove(s.Path); err != nil { // as after a kill between the secrets and the configuration
		t.Fatal(err)
	}
	second := &person{answers: map[string][]string{"Client ID": {"dingother"}, "Client Secret": {"s2"}}}
	s.Ask = second
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if cfg, _ := load(t, s); cfg.DingTalk[0].ClientID != "dingother" || cfg.DingTalk[0].ClientSecret.Reveal() != "s1" {
		t.Errorf("id %q, secret %q", cfg.DingTalk[0].ClientID, cfg.DingTalk[0].ClientSecret.Reveal())
	}
	s.Force, s.Ask = true, &person{answers: map[string][]string{"Client ID": {"dingthird"}, "Client Secret": {"s3"}, "API key": {"k3"}}}
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if cfg, _ := load(t, s); cfg.DingTalk[0].ClientID != "dingthird" || cfg.DingTalk[0].ClientSecret.Reveal() != "s3" {
		t.Errorf("id %q, secret %q", cfg.DingTalk[0].ClientID, cfg.DingTalk[0].ClientSecret.Reveal())
	}
}

// A place that can't have the file is named before the first question, also with --force: a folder, and a folder that is not there.
func TestPlaceIsCheckedFirst(t *testing.T) {
	t.Parallel()
	s, _ := prepare(t)
	folder := filepath.Dir(s.Path)
	for path, want := range map[string]string{
		folder: "is a folder; --config names a file, as in " + filepath.Join(folder, "config.jsonc"), filepath.Join(folder, "none", "mine.jsonc"): "no such file or directory; --config names a file in a folder",
	} {
		for _, force := range []bool{false, true} {
			asked := &person{}
			one := Setup{Path: path, Force: force, Getenv: s.Getenv, Out: s.Out, Ask: asked}
			err := one.Run(t.Context())
			if !errors.Is(err, ErrPlace) || errors.Is(err, ErrExists) || !strings.Contains(err.Error(), want) || len(asked.asked) > 0 {
				t.Errorf("%s, force %t: %v after the questions %q", path, force, err, asked.asked)
			}
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// An answer that can't work changes nothing: the secrets of a working configuration stay, also with --force, and a first run leaves no file.
func TestRefusedAnswersChangeNothing(t *testing.T) {
	t.Parallel()
	s, _ := prepare(t)
	bad := func() *person {
		return &person{answers: map[string][]string{
			"Client ID": {"dingother"}, "Client Secret": {"s2"}, "API key": {"k2"}, "endpoint, of": {"http://127.0.0.1:1/v1?a=1"},
		}}
	}
	left := func() (names []string) {
		t.Helper()
		err := filepath.WalkDir(filepath.Dir(s.Path), func(path string, d fs.DirEntry, err error) error {
			if !d.IsDir() {
				names = append(names, d.Name())
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	s.Ask = bad()
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "query") || len(left()) > 0 {
		t.Fatalf("a first run: %v, left %q", err, left())
	}
	s.Ask = &person{answers: map[string][]string{"Client ID": {"dingabc"}, "Client Secret": {"s1"}, "API key": {"k1"}}}
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Force, s.Ask = true, bad()
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "query") || strings.Contains(err.Error(), ".new-") {
		t.Fatalf("a second run: %v", err)
	}
	if cfg, _ := load(t, s); cfg.DingTalk[0].ClientID != "dingabc" || cfg.DingTalk[0].ClientSecret.Reveal() != "s1" || cfg.LLM.Models[0].APIKey.Reveal() != "k1" {
		t.Errorf("id %q, secret %q", cfg.DingTalk[0].ClientID, cfg.DingTalk[0].ClientSecret.Reveal())
	}
	if names := left(); len(names) != 3 {
		t.Errorf("%q is left", names)
	}
}

// Without a terminal, flags and the environment have the answers. All that is missing is named at once, and nothing is written.
func TestNoTerminal(t *testing.T) {
	t.Parallel()
	s, out := prepare(t)
	err := s.Run(t.Context())
	for _, want := range []string{"client_id: --client-id, or DINGTALK_CLIENT_ID", "--client-secret-file, or DINGTALK_CLIENT_SECRET", "--api-key-file, or LLM_API_KEY"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %q", err, want)
		}
	}
	if left, _ := os.ReadDir(filepath.Dir(s.Path)); len(left) > 0 {
		t.Errorf("%v was written", left)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Getenv = variables(map[string]string{"DINGTALK_CLIENT_ID": "dingenv", "DATABASE_URL": "postgres://h/d"})
	s.Given = Given{ClientSecretFile: secret, BaseURL: "http://127.0.0.1:1/v1?a=1&b=<2>"}
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "query") || strings.Contains(err.Error(), ".ebb-") {
		t.Errorf("an address that can't work: %v", err)
	}
	if left, _ := os.ReadDir(filepath.Dir(s.Path)); len(left) > 0 {
		t.Errorf("%v was written", left)
	}
	s.Given.BaseURL = "http://127.0.0.1:1/v1" // a server of one's own, which needs no key
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	cfg, text := load(t, s)
	if cfg.DingTalk[0].ClientID != "dingenv" || cfg.DingTalk[0].ClientSecret.Reveal() != "hunter2" || cfg.LLM.Models[0].APIKey != "" || cfg.Database.URL.Reveal() != "postgres://h/d" {
		t.Errorf("the configuration is\n%s", text)
	}
	for _, want := range []string{`"${DINGTALK_CLIENT_ID}"`, `"${file:` + secret + `}"`, `"${DATABASE_URL:-}"`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if strings.Contains(text+out.String(), "hunter2") {
		t.Errorf("a secret is shown in\n%s\n%s", text, out)
	}
}

// A person who gives no answer, or ends the dialog, leaves nothing behind.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	s, _ := prepare(t)
	p := &person{answers: map[string][]string{"Client ID": {"dingabc"}, "Client Secret": {}}}
	s.Ask = p
	if err := s.Run(t.Context()); err == nil || len(p.asked) != 1+maxTries {
		t.Errorf("%v after %q", err, p.asked)
	}
	if left, _ := os.ReadDir(filepath.Dir(s.Path)); len(left) > 0 {
		t.Errorf("%v was written", left)
	}
}
