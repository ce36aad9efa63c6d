package config

import (
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tailscale/hujson"

	"ebb/bot/config/strict"
)

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

// Params are fields of a provider, as JSON: objects, lists, strings, numbers, booleans and nulls. Empty ones are nil.
type Params map[string]any

var paramsType = reflect.TypeFor[Params]()

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

func (l *LLMConfig) check(k *strict.Source, need Need) {
	k.Want(len(l.Models) > 0, "llm.models", "none", "at least one model")
	first := map[string]int{}
	for i := range l.Models {
		path := fmt.Sprintf("llm.models[%d]", i)
		m := &l.Models[i]
		m.check(k, path, need)
		if j, twice := first[m.Name]; twice && m.Name != "" {
			k.Fail(path+".name", "got %q, which is also the name of llm.models[%d], want a name of its own", m.Name, j)
			continue
		}
		first[m.Name] = i
	}
	k.Want(currencyForm.MatchString(l.Currency), "llm.currency", strconv.Quote(l.Currency), "a code such as CNY or a sign such as ¥, at most 8 characters, or empty")
	k.Between("llm.max_concurrent", l.MaxConcurrent, 1, 10000)
	if len(l.Models) > 0 {
		k.Want(l.has(l.Default), "llm.default", strconv.Quote(l.Default), "the name of a model in llm.models: %s", l.names())
	}
}

var currencyForm = regexp.MustCompile(`^[\p{L}\p{Sc}]{0,8}$`)

func (m *ModelConfig) check(k *strict.Source, path string, need Need) {
	wantName(k, path+".name", m.Name, "a name")
	wantName(k, path+".model", m.Model, "the provider's name of the model")
	wantModelURL(k, path+".base_url", m.BaseURL.Reveal())
	if len(k.Unset(path+".api_key")) > 0 && need&NeedLLM != 0 {
		// An explicitly empty key is for endpoints without one; a named variable without a value is an oversight.
		k.Required(path+".api_key", m.APIKey.Reveal(), "the key of the endpoint")
	}
	wantCredential(k, path+".api_key", m.APIKey.Reveal(), "the key of the endpoint")
	k.Want(m.MaxOutput > 0, path+".max_output", m.MaxOutput, "more than 0")
	k.Positive(path+".timeout", m.Timeout)
	k.Positive(path+".first_token_timeout", m.FirstToken)
	if t := m.Temperature; t != nil {
		k.Want(*t >= 0 && *t <= 2, path+".temperature", *t, "0 to 2, or null")
	}
	wantParams(k, path+".params", m.Params)
	k.Want(m.PriceIn >= 0, path+".price_in", m.PriceIn, "0 or more")
	k.Want(m.PriceCached >= 0, path+".price_cached", m.PriceCached, "0 or more")
	k.Want(m.PriceOut >= 0, path+".price_out", m.PriceOut, "0 or more")
	k.Between(path+".retries", m.Retries, 0, 10)
}

// checkTimes refuses timeouts of the file that another one ends. Defaults are left alone: a printed configuration names them.
func (l *LLMConfig) checkTimes(k *strict.Source, turn time.Duration) {
	usual := defaultModel()
	for i, m := range l.Models {
		at := fmt.Sprintf("llm.models[%d].", i)
		if !k.IsGiven(at+"timeout") || m.Timeout == usual.Timeout {
			continue
		}
		k.Want(m.Timeout <= turn, at+"timeout", strict.DurationText(m.Timeout), "at most agent.turn_timeout (%s), which ends the turn", strict.DurationText(turn))
		if k.IsGiven(at+"first_token_timeout") && m.FirstToken != usual.FirstToken {
			k.Want(m.FirstToken <= m.Timeout, at+"first_token_timeout", strict.DurationText(m.FirstToken), "at most timeout (%s)", strict.DurationText(m.Timeout))
		}
	}
}

func (l *LLMConfig) has(name string) bool {
	return slices.ContainsFunc(l.Models, func(m ModelConfig) bool { return m.Name == name })
}

func (l *LLMConfig) names() string {
	var names []string
	for _, m := range l.Models {
		names = append(names, strconv.Quote(m.Name))
	}
	return strings.Join(names, ", ")
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

// wantModelURL refuses a base_url with the path that clients append, and warns of those of other functions.
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

// answerMargin is the part of the reserve besides the answer, in tokens: counts are estimates, and requests have
// overhead.
const answerMargin = 1024

// fitOutput lowers the answers of all models to fit the reserve, which is that of key.
func (l *LLMConfig) fitOutput(src *strict.Source, reserve int, key string) {
	room := reserve - answerMargin
	if room < answerMargin/4 {
		room = max(1, reserve/2) // a reserve below the margin still leaves half of it to the answer
	}
	for i := range l.Models {
		if m := &l.Models[i]; m.MaxOutput > room {
			path := fmt.Sprintf("llm.models[%d].max_output", i)
			src.Warn(path, "lowered from %d to %d, to fit %s (%d)", m.MaxOutput, room, key, reserve)
			m.MaxOutput = room
		}
	}
}

// fitKeys removes the inherited key of a model of another provider than the first model's, and warns of such models.
func (l *LLMConfig) fitKeys(src *strict.Source) {
	for i := range l.Models {
		m, path := &l.Models[i], fmt.Sprintf("llm.models[%d].api_key", i)
		switch {
		case !src.IsGiven(fmt.Sprintf("llm.models[%d]", i)) || src.IsGiven(path):
		case i > 0 && hostOf(m.BaseURL.Reveal()) != hostOf(l.Models[0].BaseURL.Reveal()):
			m.APIKey = ""
			src.Warn(path, `no key is sent: %s is another host than that of llm.models[0], whose key is in LLM_API_KEY; say api_key, or "" for none`, hostOf(m.BaseURL.Reveal()))
		case m.APIKey == "":
			src.Warn(path, `no key is sent: LLM_API_KEY is not set; say api_key, or "" for none`)
		}
	}
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// warn records prices of which one is missing, times without effect, and addresses without a version.
func (l *LLMConfig) warn(src *strict.Source) {
	for i, m := range l.Models {
		at := fmt.Sprintf("llm.models[%d].", i)
		switch {
		case m.PriceIn == 0 && m.PriceOut > 0:
			src.Warn(at+"price_out", "without price_in, input costs nothing")
		case m.PriceCached > m.PriceIn:
			src.Warn(at+"price_cached", "more than price_in (%g)", m.PriceIn)
		}
		if m.FirstToken > m.Timeout {
			src.Warn(at+"first_token_timeout", "does nothing: an attempt ends after timeout (%s)", strict.DurationText(m.Timeout))
		}
		warnOfVersion(src, at+"base_url", m.BaseURL)
	}
}

// versions are the paths of known providers. Others may have none.
var versions = map[string]string{
	"api.openai.com": "/v1", "api.moonshot.cn": "/v1", "api.siliconflow.cn": "/v1", "openrouter.ai": "/api/v1", "dashscope.aliyuncs.com": "/compatible-mode/v1",
}

// warnOfVersion warns of the address of a known provider without a version.
func warnOfVersion(src *strict.Source, path string, e Endpoint) {
	u, err := url.Parse(e.Reveal())
	if err == nil && strings.Trim(u.Path, "/") == "" && versions[u.Hostname()] != "" {
		src.Warn(path, "has no version, want https://%s%s", u.Hostname(), versions[u.Hostname()])
	}
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

// wantParams refuses fields that Ebb sets itself: requests would contradict each other.
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
