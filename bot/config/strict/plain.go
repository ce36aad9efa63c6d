package strict

import (
	"encoding/json"

	"github.com/tailscale/hujson"
)

// Plain returns a value of any form: a map[string]any, []any, string, json.Number, bool or nil. Numbers stay as they are written. Strings
// may name the environment.
func (s *Source) Plain(path string, v hujson.Value) any {
	s.at[path] = v.StartOffset
	switch value := v.Value.(type) {
	case *hujson.Object:
		out, seen := map[string]any{}, map[string]member{}
		for _, m := range value.Members {
			name, _ := m.Name.Value.(hujson.Literal)
			this := member{memberKey(m), m.Name.StartOffset}
			if twice(s, path, seen[name.String()], this) {
				continue
			}
			seen[name.String()] = this
			out[name.String()] = s.Plain(Join(path, this.key), m.Value)
		}
		return out
	case *hujson.Array:
		out := []any{}
		for _, e := range value.Elements {
			out = append(out, s.Plain(path, e))
		}
		return out
	case hujson.Literal:
		switch value.Kind() {
		case '"':
			return s.Expand(path, value.String())
		case '0':
			return json.Number(string(value))
		case 't', 'f':
			return value.Kind() == 't'
		}
	}
	return nil
}
