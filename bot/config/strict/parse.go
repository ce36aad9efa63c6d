package strict

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// maxSize keeps a wrong path (a log, a database) from being parsed; a config has a few kilobytes.
const maxSize = 256 << 10

// CheckSyntax returns the first syntax error of JSON with comments, as a *FieldError, or nil.
func CheckSyntax(name string, data []byte) error {
	src := NewSource(name, data, nil, NoRules{})
	src.Parse()
	if len(src.errs) == 0 {
		return nil
	}
	return src.errs[0].err
}

var hujsonPlace = regexp.MustCompile(`^hujson: line (\d+), column (\d+): `)

// Parse bounds the file before it is parsed, and places each syntax error. The parser would show the text of a bad string, which may
// be a secret.
func (s *Source) Parse() (hujson.Value, bool) {
	if len(s.data) > maxSize {
		s.FailAt(0, "", "got a file of %d bytes, want a config of at most %d", len(s.data), maxSize)
		return hujson.Value{}, false
	}
	if n := InvalidUTF8(s.data); n >= 0 {
		s.FailAt(n, "", "got a byte that is not UTF-8")
		return hujson.Value{}, false
	}
	if len(bytes.TrimSpace(s.data)) == 0 {
		s.FailAt(0, "", "got an empty file, want an object")
		return hujson.Value{}, false
	}
	root, err := hujson.Parse(s.data)
	if err == nil {
		return root, true
	}
	problem, offset := err.Error(), 0
	if m := hujsonPlace.FindStringSubmatch(problem); m != nil {
		problem = problem[len(m[0]):]
		line, _ := strconv.Atoi(m[1])
		col, _ := strconv.Atoi(m[2])
		offset = byteOffset(s.data, line, col)
	}
	if strings.HasPrefix(problem, `invalid literal: "`) {
		problem = "invalid string: a bad escape, or a line break in it" // the parser would show it; it may be a secret
	}
	s.FailAt(offset, "", "%s", problem)
	return hujson.Value{}, false
}

// InvalidUTF8 returns the offset of the first byte that is not UTF-8, or -1.
func InvalidUTF8(data []byte) int {
	for n := 0; n < len(data); {
		r, size := utf8.DecodeRune(data[n:])
		if r == utf8.RuneError && size == 1 {
			return n
		}
		n += size
	}
	return -1
}

func byteOffset(data []byte, line, col int) int {
	offset := 0
	for range line - 1 {
		n := bytes.IndexByte(data[offset:], '\n')
		if n < 0 {
			return len(data)
		}
		offset += n + 1
	}
	return min(offset+col-1, len(data))
}

// KindName is for errors, which never show the value: it may be a secret in the wrong field.
func KindName(v hujson.Value) string {
	switch v.Value.Kind() {
	case 'n':
		return "null"
	case 't', 'f':
		return "true or false"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '{':
		return "an object"
	case '[':
		return "a list"
	default:
		panic(fmt.Sprintf("a value of JSON has no kind %q", v.Value.Kind()))
	}
}
