package config

import (
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// Params are fields of a provider, as JSON: objects, lists, strings, numbers, booleans and nulls. Empty ones are nil.
type Params map[string]any

var paramsType = reflect.TypeFor[Params]()

func decodeParams(src *source, path string, v hujson.Value, dst reflect.Value) {
	if v.Value.Kind() != '{' {
		src.fail(path, "got %s, want an object", kindName(v))
		return
	}
	if all, _ := plainJSON(src, path, v).(map[string]any); len(all) > 0 {
		dst.Set(reflect.ValueOf(Params(all)))
		return
	}
	dst.SetZero()
}

// plainJSON keeps numbers as they are written. Strings may name the environment.
func plainJSON(src *source, path string, v hujson.Value) any {
	src.at[path] = v.StartOffset
	switch value := v.Value.(type) {
	case *hujson.Object:
		out, seen := map[string]any{}, map[string]member{}
		for _, m := range value.Members {
			name, _ := m.Name.Value.(hujson.Literal)
			this := member{memberKey(m), m.Name.StartOffset}
			if src.twice(path, seen[name.String()], this) {
				continue
			}
			seen[name.String()] = this
			out[name.String()] = plainJSON(src, join(path, this.key), m.Value)
		}
		return out
	case *hujson.Array:
		out := []any{}
		for _, e := range value.Elements {
			out = append(out, plainJSON(src, path, e))
		}
		return out
	case hujson.Literal:
		switch value.Kind() {
		case '"':
			return src.expand(path, value.String())
		case '0':
			return json.Number(string(value))
		case 't', 'f':
			return value.Kind() == 't'
		}
	}
	return nil
}

// ownFields are the fields of a request that Ebb sets, each with the key to use in its place.
var ownFields = map[string]string{
	"model": "the key model beside it", "max_tokens": "the key max_output", "max_completion_tokens": "the key max_output",
	"max_output_tokens": "the key max_output", "temperature": "the key temperature beside it",
	"messages": "agent.prompt for instructions", "system": "agent.prompt for instructions",
	"tools": "the keys tools and groups of this file", "functions": "the keys tools and groups of this file",
	"tool_choice": "", "function_call": "", "stream": "", "stream_options": "", "n": "", "response_format": "", "input": "", "prompt": "agent.prompt for instructions",
	"extra_body": "its fields here, without it", "api_key": "the key api_key beside it",
}

// params refuses fields that Ebb sets itself: requests would contradict each other.
func (k checker) params(path string, p Params) {
	for _, name := range slices.Sorted(maps.Keys(p)) {
		instead, own := ownFields[strings.ToLower(name)]
		switch {
		case own && instead == "":
			k.fail(join(path, keyText(name)), "is set by Ebb itself in each request, want only other fields of the provider")
		case own:
			k.fail(join(path, keyText(name)), "is set by Ebb itself, want %s", instead)
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
