package config

import (
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tailscale/hujson"

	"ebb/bot/config/strict"
)

// checkModelURL refuses a base_url with the path that clients append, and warns of those of other functions.
func wantModelURL(k *strict.Source, path, got string) {
	wantURL(k, path, got)
	u, err := url.Parse(got)
	if err != nil || k.Failed(path) {
		return
	}
	const want = "want the part before it, up to and including the version, as in https://host/v1"
	switch function := functionOfModels.FindString(strings.TrimRight(u.Path, "/")); function {
	case "":
	case "/chat/completions":
		k.Fail(path, "got an address that ends in %s, %s", function, want)
	default:
		k.Advise(false, path, "ends in %s; if that is a function, %s", function, want)
	}
}

// An address may end in /models: Azure's does.
var functionOfModels = regexp.MustCompile(`/(?:chat/completions|completions|responses|messages|embeddings)$`)

// fitModels removes the inherited key of a model of another provider than the first model's, and warns of such models.
func (c *Config) fitModels(src *strict.Source) {
	for i := range c.LLM.Models {
		m, path := &c.LLM.Models[i], fmt.Sprintf("llm.models[%d].api_key", i)
		switch {
		case !src.IsGiven(fmt.Sprintf("llm.models[%d]", i)) || src.IsGiven(path):
		case i > 0 && hostOf(m.BaseURL.Reveal()) != hostOf(c.LLM.Models[0].BaseURL.Reveal()):
			m.APIKey = ""
			src.Warn(path, `no key is sent: %s is another host than that of llm.models[0], whose key is in LLM_API_KEY; say api_key, or "" for none`, hostOf(m.BaseURL.Reveal()))
		case m.APIKey == "":
			src.Warn(path, `no key is sent: LLM_API_KEY is not set; say api_key, or "" for none`)
		}
	}
	c.warnOfTimes(src)
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// warnOfTimes warns of timeouts over the model's share of the time of a turn, or of other work, which is divided
// among the models.
func (c *Config) warnOfTimes(src *strict.Source) {
	n := len(c.LLM.Models)
	for _, work := range []struct {
		path  string
		whole time.Duration
		check bool
	}{
		{"agent.turn_timeout", c.Agent.TurnTimeout, n > 1},
		{commonPath + "deadline", c.Agent.Compaction.Deadline, n > 1},
		{commonPath + "inline_deadline", c.Agent.Compaction.InlineDeadline, n > 1 && src.IsGiven(commonPath+"inline_deadline")},
	} {
		share := work.whole / time.Duration(max(1, n))
		for i, m := range c.LLM.Models {
			path := fmt.Sprintf("llm.models[%d].", i)
			switch of := fmt.Sprintf("its share of %s (%s for %d models)", work.path, strict.DurationText(work.whole), n); {
			case !work.check:
			case i < n-1 && m.FirstToken > share:
				src.Warn(path+"first_token_timeout", "%s is more than %s, %s: the next model is asked earlier",
					strict.DurationText(m.FirstToken), strict.DurationText(share), of)
			case work.path == "agent.turn_timeout" && m.Timeout > share:
				src.Warn(path+"timeout", "%s is more than %s, %s: a longer answer is cut off",
					strict.DurationText(m.Timeout), strict.DurationText(share), of)
			}
		}
	}
}

// Unpriced returns the names of models without a price.
func (l *LLMConfig) Unpriced() (names []string) {
	for _, m := range l.Models {
		if m.PriceIn == 0 && m.PriceOut == 0 {
			names = append(names, m.Name)
		}
	}
	return names
}

// Params are fields of a provider, as JSON: objects, lists, strings, numbers, booleans and nulls. Empty ones are nil.
type Params map[string]any

var paramsType = reflect.TypeFor[Params]()

// Decode reads an object of any form.
func (p *Params) Decode(src *strict.Source, path string, v hujson.Value) {
	if v.Value.Kind() != '{' {
		src.Fail(path, "got %s, want an object", strict.KindName(v))
		return
	}
	if all, _ := src.Plain(path, v).(map[string]any); len(all) > 0 {
		*p = all
		return
	}
	*p = nil
}

// ownFields are the fields of a request that Ebb sets, each with the key to use in its place.
var ownFields = map[string]string{
	"model": "the key model of the entry", "max_tokens": "the key max_output", "max_completion_tokens": "the key max_output",
	"max_output_tokens": "the key max_output", "temperature": "the key temperature of the entry",
	"messages": "agent.prompt for instructions", "system": "agent.prompt for instructions",
	"tools": "the keys tools and groups of this file", "functions": "the keys tools and groups of this file",
	"tool_choice": "", "function_call": "", "stream": "", "stream_options": "", "n": "", "response_format": "", "input": "", "prompt": "agent.prompt for instructions",
	"extra_body": "its fields here, without it", "api_key": "the key api_key of the entry",
}

// params refuses fields that Ebb sets itself: requests would contradict each other.
func wantParams(k *strict.Source, path string, p Params) {
	for _, name := range slices.Sorted(maps.Keys(p)) {
		instead, own := ownFields[strings.ToLower(name)]
		switch {
		case own && instead == "":
			k.Fail(strict.Join(path, strict.KeyText(name)), "is set by Ebb itself in each request, want only other fields of the provider")
		case own:
			k.Fail(strict.Join(path, strict.KeyText(name)), "is set by Ebb itself, want %s", instead)
		}
	}
}

var secretName = regexp.MustCompile(`(?i)(key|token|secret|password|authorization|credentials?)$`)

// masked hides texts under names of secrets.
func (p Params) masked() map[string]any {
	return maskSecrets(map[string]any(p)).(map[string]any)
}

func maskSecrets(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, one := range v {
			if text, ok := one.(string); ok && text != "" && secretName.MatchString(name) {
				one = "***"
			}
			out[name] = maskSecrets(one)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, one := range v {
			out[i] = maskSecrets(one)
		}
		return out
	}
	return v
}
