package config

import (
	"bytes"
	"errors"
	"io/fs"
	"os"

	"ebb/bot/config/strict"
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
