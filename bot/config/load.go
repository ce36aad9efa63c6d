package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"ebb/bot/config/strict"
	"ebb/compaction"
	"ebb/sessions"
)

// Load reads a config file on top of the defaults, replaces ${NAME} from getenv, and checks it. An empty path means
// the defaults alone. The error is a *strict.Error with all faults, each with file, line and column.
func Load(path string, getenv func(string) string, need Need, overrides ...Override) (*Config, error) {
	if path == "" {
		return load(newSource("", nil, getenv), need, overrides...)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		problem := err.Error()
		if pe, ok := errors.AsType[*fs.PathError](err); ok {
			problem = pe.Err.Error()
		}
		return nil, &strict.Error{Fields: []*strict.FieldError{{File: path, Problem: "reading the config: " + problem + "; --config names another file"}}}
	}
	return parseConfig(path, data, getenv, need, overrides...)
}

// Override is a flag's value of agent.compaction. It replaces the file's, in every group too.
type Override struct {
	Flag string // such as --policy
	Key  string // such as policy
	Set  func(*CompactionSettings)
}

func (o Override) apply(src *strict.Source, cfg *Config) {
	c := &cfg.Agent.Compaction
	o.Set(&c.CompactionSettings)
	src.Give("agent.compaction."+o.Key, o.Flag)
	for id, g := range cfg.Groups {
		if o.Key == "policy" {
			g.Policy = ""
		}
		if g.Compaction != nil {
			o.Set(g.Compaction)
			src.Give(groupPath(id)+".compaction."+o.Key, o.Flag)
		}
		cfg.Groups[id] = g
	}
}

func parseConfig(name string, data []byte, getenv func(string) string, need Need, overrides ...Override) (*Config, error) {
	if data == nil {
		data = []byte{}
	}
	return load(newSource(name, bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), getenv), need, overrides...)
}

// load decodes, lets flags override, fills in what depends on other values, and checks at the end: a flag or a variable is judged
// like a value of the file.
func load(src *strict.Source, need Need, overrides ...Override) (*Config, error) {
	cfg := defaults(src)
	if src.HasFile() {
		root, ok := src.Parse()
		if !ok {
			return nil, src.Err()
		}
		decodeInto(src, root, cfg)
	}
	for _, o := range overrides {
		o.apply(src, cfg)
	}
	if !src.IsGiven("llm.default") && !cfg.LLM.has(cfg.LLM.Default) && len(cfg.LLM.Models) > 0 {
		cfg.LLM.Default = cfg.LLM.Models[0].Name
	}
	for i := range cfg.LLM.Models { // a shorter attempt bounds the default
		if m := &cfg.LLM.Models[i]; m.Timeout > 0 && m.FirstToken == defaultModel().FirstToken {
			m.FirstToken = min(m.FirstToken, m.Timeout)
		}
	}
	olderSummarizer(src, &cfg.Agent.Compaction, cfg.LLM)
	cfg.check(src, need)
	if err := src.Err(); err != nil {
		return nil, err
	}
	return cfg, nil
}

// decodeInto reads the file, and then the keys that begin as a copy of the common ones.
func decodeInto(src *strict.Source, root hujson.Value, cfg *Config) {
	strict.Decode(src, "", root, cfg)
	decodeContextWindow(src, root, &cfg.Agent.Compaction.PolicyRules)
	decodeGroupCompactions(src, root, cfg.Groups, cfg.Agent.Compaction.CompactionSettings)
	cfg.DingTalk.decodeAccess(src, root, cfg.Access)
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

// newSource returns a source with the rules of our keys.
func newSource(name string, data []byte, getenv func(string) string) *strict.Source {
	return strict.NewSource(name, data, getenv, keyRules{})
}

// keyRules are older names of keys, removed keys, and those that are read after the rest of the file.
type keyRules struct{}

func (keyRules) Canonical(t reflect.Type, key string) string { return canonicalKey(t, key) }

func (keyRules) Removed(t reflect.Type, path, key string) string { return removedReason(t, path, key) }

func (keyRules) Refuse(path, text string, t reflect.Type) string { return refuseWritten(path, text, t) }

// IsLater names the keys that decodeInto reads by itself.
func (keyRules) IsLater(t reflect.Type, key string) bool {
	switch t {
	case reflect.TypeFor[AgentConfig]():
		return key == contextWindowKey
	case reflect.TypeFor[GroupConfig]():
		return key == "compaction"
	case reflect.TypeFor[DingTalkConfig]():
		return key == "access"
	}
	return false
}

// refuseWritten refuses a secret or address with a variable as shells, batch files and other programs write it. It reads the text of the
// file alone: what a variable holds may have any form. No error shows it: a password may look like one.
func refuseWritten(path, text string, t reflect.Type) (problem string) {
	isAddress := t == reflect.TypeFor[DSN]() || t == reflect.TypeFor[Endpoint]() || slices.Contains(plainAddresses, withoutIndex(path))
	if isAddress && unbracedWithin.MatchString(text) || (isAddress || t == reflect.TypeFor[Secret]()) && unbraced.MatchString(text) {
		return "got the name of a variable in another form, want ${NAME}; a text that looks like one can come from a variable or a file"
	}
	return ""
}

// plainAddresses are not secret.
var plainAddresses = []string{
	"dingtalk.client_id", "dingtalk.api_base", "dingtalk.oapi_base", "admin.dingtalk_login.redirect_uri", "admin.dingtalk_login.authorize_url",
}

// unbracedWithin is the name of a variable in a part of an address.
var unbracedWithin = regexp.MustCompile(`[:/@=.]\$\(?[A-Z_][A-Z0-9_]+\)?(?:[:/@.?&]|$)`)

var unbraced = regexp.MustCompile(`^\s*(?:\$(?:env:)?[A-Za-z_]\w*|\$\([A-Za-z_]\w*\)|%[A-Za-z_]\w*%|\{\{.*\}\}|\{[A-Z_][A-Z0-9_]+\}|(?:env:|os\.environ/)[A-Z_][A-Z0-9_]*)\s*$`)
