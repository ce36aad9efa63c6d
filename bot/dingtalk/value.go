package dingtalk

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// object is untrusted JSON. Its readers convert to the requested type, or return the zero value, also of a nil
// object.
type object map[string]any

var errNoObject = errors.New("not a JSON object")

// parse reads a JSON object, or a JSON string that holds one.
func parse(data string) (object, error) {
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

// str is the first non-empty text of the named fields, cleaned. Numbers become text.
func (o object) str(names ...string) string {
	for _, n := range names {
		if s := asString(o[n]); s != "" {
			return s
		}
	}
	return ""
}

func asString(v any) string {
	switch v := v.(type) {
	case string:
		return strings.TrimSpace(cleanText(v))
	case json.Number:
		return v.String()
	}
	return ""
}

func (o object) obj(names ...string) object {
	for _, n := range names {
		if m := asObject(o[n]); m != nil {
			return m
		}
	}
	return nil
}

func asObject(v any) object {
	switch v := v.(type) {
	case map[string]any:
		return v
	case string:
		if s := strings.TrimSpace(v); strings.HasPrefix(s, "{") {
			if m, err := parse(s); err == nil {
				return m
			}
		}
	}
	return nil
}

// list accepts an array or a string with one; a lone object counts as an array of one.
func (o object) list(name string) []any {
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

func (o object) flag(name string) bool {
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

func (o object) has(name string) bool { return o[name] != nil }

// The database can't store times outside of these years.
var (
	earliest = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

func (o object) millis(names ...string) time.Time {
	f, err := strconv.ParseFloat(o.str(names...), 64)
	if err != nil || f < float64(earliest.UnixMilli()) || f > float64(latest.UnixMilli()) {
		return time.Time{}
	}
	return time.UnixMilli(int64(f)).UTC()
}

// cleanText drops control characters, which a database refuses, and zero-width characters and direction marks, which make
// different texts look alike. Joiners stay where they join (emoji, Persian). Line ends become newlines, no-break
// spaces become spaces.
func cleanText(s string) string {
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

// clipRunes counts runes.
func clipRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
