package pg

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// Clean makes a text valid UTF-8 without zero bytes. A message refused because of a zero byte would be redelivered
// forever.
func Clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
}

// Texts cleans values for an array parameter. nil stays nil, which is NULL.
func Texts[T ~string](values []T) []string {
	if values == nil {
		return nil
	}
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = Clean(string(v))
	}
	return texts
}

// CleanJSON encodes v without zero bytes, which PostgreSQL refuses.
func CleanJSON(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil || !bytes.Contains(b, []byte(`\u0000`)) {
		return b, err
	}
	var tree any
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		return nil, err
	}
	return json.Marshal(cleanTree(tree))
}

func cleanTree(v any) any {
	switch v := v.(type) {
	case string:
		return Clean(v)
	case []any:
		for i := range v {
			v[i] = cleanTree(v[i])
		}
	case map[string]any:
		for key, value := range v {
			delete(v, key)
			v[Clean(key)] = cleanTree(value)
		}
	}
	return v
}

// OrZero is the value of p, or the zero value for nil.
func OrZero[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// OrNil is nil, so NULL, for the zero value.
func OrNil[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// Clamp limits n to the non-negative range of the integer columns. Providers may report any number.
func Clamp(n int) int { return min(max(n, 0), math.MaxInt32) }

// ClampAll applies [Clamp] to each number.
func ClampAll(list []int) []int {
	c := make([]int, 0, len(list))
	for _, n := range list {
		c = append(c, Clamp(n))
	}
	return c
}

// Finite is f, or 0 for NaN and infinities.
func Finite(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return f
}

// ArrayText is PostgreSQL's text of an array.
func ArrayText(keys []int64) string {
	text := make([]byte, 0, 2+21*len(keys))
	text = append(text, '{')
	for i, k := range keys {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, k, 10)
	}
	return string(append(text, '}'))
}
