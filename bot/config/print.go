package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"ebb/bot/config/strict"
)

func (c *Config) inForce() Config {
	out := *c
	comp := &out.Agent.Compaction
	comp.CompactionSettings = comp.inForce(c.policies)
	out.Groups = maps.Clone(c.Groups)
	for _, own := range c.groupCompactions() {
		g, set := out.Groups[own.id], own.inForce(c.policies)
		g.Policy, g.Compaction = "", &set // a policy is named once
		out.Groups[own.id] = g
	}
	return out
}

// JSON returns the effective config in the order of the reference file, with secrets as *** and explicit rules of the
// policy. Load accepts it, apart from secrets.
func (c *Config) JSON() ([]byte, error) {
	var compact, pretty bytes.Buffer
	if err := writeJSON(&compact, reflect.ValueOf(c.inForce())); err != nil {
		return nil, err
	}
	if err := json.Indent(&pretty, compact.Bytes(), "", "  "); err != nil {
		return nil, fmt.Errorf("indenting the config: %w", err)
	}
	pretty.WriteByte('\n')
	return pretty.Bytes(), nil
}

// writeJSON follows the order of the struct fields, which is that of the reference file: encoding/json would sort keys of groups
// alone and could not mask secrets by type.
func writeJSON(w *bytes.Buffer, v reflect.Value) error {
	switch {
	case v.Type() == strict.DurationType:
		return writeLeaf(w, strict.DurationText(time.Duration(v.Int())))
	case v.Type() == paramsType:
		params, _ := reflect.TypeAssert[Params](v)
		return writeLeaf(w, params.masked())
	case v.Kind() == reflect.Struct:
		set := strict.FieldsOf(v.Type())
		if v.Type() == reflect.TypeFor[GroupConfig]() { // an absent key keeps the common value, as an empty one does
			set.Names = slices.DeleteFunc(set.Names, func(name string) bool { return v.FieldByIndex(set.Index[name]).IsZero() })
		}
		if len(set.Names) == 0 {
			w.WriteByte('{')
		}
		for i, name := range set.Names {
			w.WriteString(separator(i, '{'))
			fmt.Fprintf(w, "%q:", name)
			if err := writeJSON(w, v.FieldByIndex(set.Index[name])); err != nil {
				return err
			}
		}
		w.WriteByte('}')
		return nil
	case v.Type() == robotsType && v.Len() == 1:
		return writeJSON(w, v.Index(0))
	case v.Type() == reflect.TypeFor[*CompactionSettings](), v.Type() == reflect.TypeFor[*AccessConfig]() && !v.IsNil():
		return writeJSON(w, v.Elem())
	case v.Kind() == reflect.Map:
		return writeMap(w, v)
	case v.Kind() == reflect.Slice && v.Len() > 0:
		for i := range v.Len() {
			w.WriteString(separator(i, '['))
			if err := writeJSON(w, v.Index(i)); err != nil {
				return err
			}
		}
		w.WriteByte(']')
		return nil
	case v.Kind() == reflect.Slice:
		w.WriteString("[]")
		return nil
	default:
		return writeLeaf(w, v.Interface())
	}
}

func writeMap(w *bytes.Buffer, v reflect.Value) error {
	w.WriteByte('{')
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for i, key := range keys {
		if i > 0 {
			w.WriteByte(',')
		}
		if err := writeLeaf(w, key.String()); err != nil {
			return err
		}
		w.WriteByte(':')
		if err := writeJSON(w, v.MapIndex(key)); err != nil {
			return err
		}
	}
	w.WriteByte('}')
	return nil
}

func separator(i int, open byte) string {
	if i == 0 {
		return string(open)
	}
	return ","
}

// URLs contain & and <, which stay unescaped.
func writeLeaf(w *bytes.Buffer, x any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(x); err != nil {
		return fmt.Errorf("printing the config: %w", err)
	}
	return nil
}
