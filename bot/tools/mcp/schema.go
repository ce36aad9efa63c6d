package mcp

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// maxSchema bounds the schema of a tool, in bytes.
const maxSchema = 16 << 10

// objectSchema is schema if it describes an object, is small, and has a form that providers accept. A refused schema costs the whole request, and
// each turn. Any other one becomes the schema of all objects: the server checks the arguments.
func objectSchema(schema map[string]any) map[string]any {
	raw, err := json.Marshal(schema)
	if kind, _ := schema["type"].(string); err != nil || len(raw) > maxSchema || kind != "object" || !isSchema(schema, maxDepth) || isJoined(schema) {
		return map[string]any{"type": "object", "properties": map[string]any{}}
	}
	schema = maps.Clone(schema)
	delete(schema, "$schema")
	if schema["properties"] == nil {
		schema["properties"] = map[string]any{} // some providers demand it
	}
	return schema
}

const maxDepth = 20

// isJoined reports whether an outermost schema has parts that providers accept only deeper.
func isJoined(schema map[string]any) bool {
	return slices.ContainsFunc([]string{"anyOf", "oneOf", "allOf", "not", "enum"}, func(key string) bool { return schema[key] != nil })
}

var schemaTypes = []string{"object", "array", "string", "number", "integer", "boolean", "null"}

// isSchema reports whether the keys of v that name types, properties and parts have values of the right form.
func isSchema(v any, depth int) bool {
	schema, ok := v.(map[string]any)
	if !ok {
		_, ok = v.(bool)
		return ok && depth < maxDepth
	}
	if depth == 0 {
		return false
	}
	part := func(v any) bool { return isSchema(v, depth-1) }
	for key, v := range schema {
		switch key {
		case "type":
			ok = isText(v) && slices.Contains(schemaTypes, v.(string)) || isList(v, func(v any) bool { return isText(v) && slices.Contains(schemaTypes, v.(string)) })
		case "properties", "patternProperties", "$defs", "definitions":
			ok = isTable(v, part)
		case "items":
			ok = part(v) || isList(v, part)
		case "additionalProperties", "not":
			ok = part(v)
		case "anyOf", "oneOf", "allOf":
			ok = isList(v, part)
		case "required":
			list, isArray := v.([]any)
			ok = isArray && (len(list) == 0 || isList(v, isText))
		case "enum":
			ok = isList(v, func(any) bool { return true })
		case "$ref":
			ok = isText(v) && strings.HasPrefix(v.(string), "#")
		case "description", "title":
			ok = isText(v)
		}
		if !ok {
			return false
		}
	}
	return true
}

func isText(v any) bool { _, ok := v.(string); return ok }

// isList accepts lists with at least one element.
func isList(v any, each func(any) bool) bool {
	list, ok := v.([]any)
	return ok && len(list) > 0 && !slices.ContainsFunc(list, func(v any) bool { return !each(v) })
}

func isTable(v any, each func(any) bool) bool {
	table, ok := v.(map[string]any)
	for _, v := range table {
		ok = ok && each(v)
	}
	return ok
}
