package main

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"time"

	"github.com/tailscale/hujson"
)

// plainKey matches every key we have, and what can be shown as it is.
var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

var durationType = reflect.TypeFor[time.Duration]()

// decodeInto puts the values of the file into cfg, strictly: unknown and repeated keys, wrong types and numbers out of
// range are recorded in src, and the default stays. It walks the syntax tree itself because encoding/json takes repeated
// keys and keys in other letter case in silence, and stops at the first wrong type.
func decodeInto(src *source, root hujson.Value, cfg *Config) {
	decode(src, "", root, reflect.ValueOf(cfg).Elem())
}

func decode(src *source, path string, v hujson.Value, dst reflect.Value) {
	src.at[path] = v.StartOffset
	switch {
	case dst.Type() == durationType:
		decodeDuration(src, path, v, dst)
	case dst.Kind() == reflect.Struct:
		decodeObject(src, path, v, dst)
	case dst.Kind() == reflect.Slice:
		decodeList(src, path, v, dst)
	case dst.Kind() == reflect.Pointer:
		if v.Value.Kind() == 'n' {
			dst.SetZero()
			return
		}
		target := reflect.New(dst.Type().Elem())
		decode(src, path, v, target.Elem())
		dst.Set(target)
	default:
		decodeScalar(src, path, v, dst)
	}
}

func decodeObject(src *source, path string, v hujson.Value, dst reflect.Value) {
	obj, ok := v.Value.(*hujson.Object)
	if !ok {
		src.fail(path, "got %s, want an object", kindName(v))
		return
	}
	fields := jsonFields(dst.Type())
	seen := map[string]int{}
	for _, m := range obj.Members {
		name, _ := m.Name.Value.(hujson.Literal) // the parser takes nothing else for a name
		key := name.String()
		if !plainKey.MatchString(key) {
			key = strconv.Quote(key) // a line break in it must not break the line of the error
		}
		child := join(path, key)
		if first, twice := seen[key]; twice {
			src.failAt(m.Name.StartOffset, child, "given twice, first in line %d", src.place(first, "", "").Line)
			continue
		}
		seen[key] = m.Name.StartOffset
		index, known := fields.index[key]
		if !known {
			src.failAt(m.Name.StartOffset, child, "no such key, want one of %s", keyList(fields.names))
			continue
		}
		decode(src, child, m.Value, dst.Field(index))
	}
}

func decodeList(src *source, path string, v hujson.Value, dst reflect.Value) {
	list, ok := v.Value.(*hujson.Array)
	if !ok {
		src.fail(path, "got %s, want a list", kindName(v))
		return
	}
	src.forget(path)
	out := reflect.MakeSlice(dst.Type(), len(list.Elements), len(list.Elements))
	for i, e := range list.Elements {
		if m, isModel := reflect.TypeAssert[*ModelConfig](out.Index(i).Addr()); isModel {
			*m = defaultModel()
			// As in the reference file; an endpoint that asks for no key is given an empty one.
			m.APIKey = Secret(src.expand(fmt.Sprintf("%s[%d].api_key", path, i), "${LLM_API_KEY:-}"))
			if len(list.Elements) == 1 {
				m.Name = "main"
			}
		}
		decode(src, fmt.Sprintf("%s[%d]", path, i), e, out.Index(i))
	}
	dst.Set(out)
}

func decodeScalar(src *source, path string, v hujson.Value, dst reflect.Value) {
	lit, _ := v.Value.(hujson.Literal)
	kind := v.Value.Kind()
	switch dst.Kind() {
	case reflect.String:
		if kind != '"' {
			src.fail(path, "got %s, want a string", kindName(v))
			return
		}
		dst.SetString(src.expand(path, lit.String()))
	case reflect.Bool:
		if kind != 't' && kind != 'f' {
			src.fail(path, "got %s, want true or false", kindName(v))
			return
		}
		dst.SetBool(lit.Bool())
	case reflect.Int:
		if kind != '0' {
			src.fail(path, "got %s, want a whole number", kindName(v))
			return
		}
		n, err := strconv.ParseInt(string(lit), 10, 32) // no field needs more, and sums of two cannot overflow
		if err != nil {
			src.fail(path, "got %s, want a whole number of at most %d", lit, math.MaxInt32)
			return
		}
		dst.SetInt(n)
	case reflect.Float64:
		if kind != '0' {
			src.fail(path, "got %s, want a number", kindName(v))
			return
		}
		f, err := strconv.ParseFloat(string(lit), 64)
		if err != nil {
			src.fail(path, "got %s, want a number that is not beyond all bounds", lit)
			return
		}
		dst.SetFloat(f)
	default:
		panic(fmt.Sprintf("config field %s has a type that no file can set: %s", path, dst.Type()))
	}
}

func decodeDuration(src *source, path string, v hujson.Value, dst reflect.Value) {
	const want = `want a duration such as "20s", "5m" or a number of seconds`
	lit, _ := v.Value.(hujson.Literal)
	switch v.Value.Kind() {
	case '0':
		seconds, err := strconv.ParseFloat(string(lit), 64)
		if err != nil || math.Abs(seconds) > math.MaxInt64/float64(time.Second)/2 {
			src.fail(path, "got %s, %s", lit, want)
			return
		}
		dst.SetInt(int64(seconds * float64(time.Second)))
	case '"':
		text := src.expand(path, lit.String())
		d, err := time.ParseDuration(text)
		if err != nil {
			src.fail(path, "got %q, %s", text, want)
			return
		}
		dst.SetInt(int64(d))
	default:
		src.fail(path, "got %s, %s", kindName(v), want)
	}
}

// fieldSet is the keys of a struct, in its order, and where they are.
type fieldSet struct {
	names []string
	index map[string]int
}

func jsonFields(t reflect.Type) fieldSet {
	set := fieldSet{index: map[string]int{}}
	for i := range t.NumField() {
		if name := t.Field(i).Tag.Get("json"); name != "" && name != "-" {
			set.names = append(set.names, name)
			set.index[name] = i
		}
	}
	return set
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
