// Package value reads JSON of DingTalk, whose types and texts may be anything.
package value

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Object is untrusted JSON. Its readers convert to the requested type, or return the zero value, also of a nil
// object.
type Object map[string]any

var errNoObject = errors.New("not a JSON object")

// Parse reads a JSON object, or a JSON string that holds one.
func Parse(data string) (Object, error) {
	v, err := parseAny(data)
	if err != nil {
		return nil, err
	}
	if s, ok := v.(string); ok {
		if v, err = parseAny(s); err != nil {
			return nil, err
		}
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, errNoObject
	}
	return m, nil
}

// Numbers stay as written, since ids may exceed a float. Errors quote no data.
func parseAny(data string) (any, error) {
	d := json.NewDecoder(strings.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, errNoObject
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errNoObject
	}
	return v, nil
}

// Str is the first non-empty text of the named fields, cleaned. Numbers become text.
func (o Object) Str(names ...string) string {
	for _, n := range names {
		if s := String(o[n]); s != "" {
			return s
		}
	}
	return ""
}

// String is the text or the number in a value, cleaned; empty for any other type.
func String(v any) string {
	switch v := v.(type) {
	case string:
		return strings.TrimSpace(Clean(v))
	case json.Number:
		return v.String()
	}
	return ""
}

// Obj is the first of the named fields that holds an object; nil for none.
func (o Object) Obj(names ...string) Object {
	for _, n := range names {
		if m := ObjectOf(o[n]); m != nil {
			return m
		}
	}
	return nil
}

// ObjectOf accepts an object, or a string with one; nil for any other value.
func ObjectOf(v any) Object {
	switch v := v.(type) {
	case map[string]any:
		return v
	case string:
		if s := strings.TrimSpace(v); strings.HasPrefix(s, "{") {
			if m, err := Parse(s); err == nil {
				return m
			}
		}
	}
	return nil
}

// List accepts an array or a string with one; a lone object counts as an array of one.
func (o Object) List(name string) []any {
	switch v := o[name].(type) {
	case []any:
		return v
	case map[string]any:
		return []any{v}
	case string:
		if parsed, err := parseAny(v); err == nil {
			if l, ok := parsed.([]any); ok {
				return l
			}
		}
	}
	return nil
}

// Flag accepts a boolean, its text, or a number other than 0.
func (o Object) Flag(name string) bool {
	switch v := o[name].(type) {
	case bool:
		return v
	case string:
		b, err := strconv.ParseBool(strings.ToLower(strings.TrimSpace(v)))
		return err == nil && b
	case json.Number:
		return v.String() != "0"
	}
	return false
}

// Has reports whether a field is there and not null.
func (o Object) Has(name string) bool { return o[name] != nil }

// The database can't store times outside of these years.
var (
	earliest = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// Millis is the time in the first non-empty of the named fields, in Unix milliseconds; zero outside of the years that can be stored.
func (o Object) Millis(names ...string) time.Time {
	f, err := strconv.ParseFloat(o.Str(names...), 64)
	if err != nil || f < float64(earliest.UnixMilli()) || f > float64(latest.UnixMilli()) {
		return time.Time{}
	}
	return time.UnixMilli(int64(f)).UTC()
}

// Clean drops control characters, which a database refuses, and zero-width characters and direction marks, which make
// different texts look alike. Joiners stay where they join (emoji, Persian). Line ends become newlines, no-break
// spaces become spaces.
func Clean(s string) string {
	if !strings.ContainsFunc(s, isOdd) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	rs := []rune(strings.ReplaceAll(s, "\r\n", "\n"))
	for i, r := range rs {
		switch {
		case r == '\r' || r == '\u0085' || r == '\u2028' || r == '\u2029':
			b.WriteByte('\n')
		case r == '\u00a0' || r == '\u202f' || r == '\u2007':
			b.WriteByte(' ')
		case r == '\u200c' || r == '\u200d':
			if i > 0 && i+1 < len(rs) && isJoiner(rs[i-1]) && isJoiner(rs[i+1]) {
				b.WriteRune(r)
			}
		case !isOdd(r):
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isJoiner(r rune) bool { return r > unicode.MaxLatin1 && !isOdd(r) && !unicode.IsSpace(r) }

func isOdd(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x20 || r >= 0x7f && r <= 0xa0:
		return true
	case r == '\u00ad' || r == '\u061c' || r == '\u180e' || r == '\u2007' || r == '\u202f' || r == '\ufeff':
		return true
	case r >= '\u200b' && r <= '\u200f' || r >= '\u2028' && r <= '\u202e' || r >= '\u2060' && r <= '\u206f':
		return true
	}
	return false
}

// Clip counts runes.
func Clip(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// OneLine joins the words of a text by single spaces.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
