package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// FieldError is one fault of a config file.
type FieldError struct {
	File      string // as named on the command line; empty for a config built in code
	Line, Col int    // from 1, in characters; 0 without a position
	Field     string // such as agent.compaction.reserve_tokens; empty for a fault of the file itself
	Problem   string // the found and the expected value
}

// Error returns file:line:col: field: problem, without empty parts.
func (e *FieldError) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File + ":")
		if e.Line > 0 {
			fmt.Fprintf(&b, "%d:%d:", e.Line, e.Col)
		}
		b.WriteByte(' ')
	}
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString(e.Problem)
	return b.String()
}

// A file with more faults is probably no config.
const maxErrors = 100

// Error holds all faults of a config file, at most a hundred, in the order of the file.
type Error struct{ Fields []*FieldError }

// Error returns one line for each fault.
func (e *Error) Error() string {
	lines := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

// source records the position of each value, and the environment variables that it lacked, for checks of the finished
// Config. Paths have the form llm.models[0].api_key.
type source struct {
	name    string
	data    []byte
	getenv  func(string) string
	at      map[string]int      // path of a value -> offset in data
	unset   map[string][]string // path of a value -> its empty variables without a default
	removed []removedKey        // given keys that are no more
	// written holds a value's name in the file or on the command line, if it is not its path.
	written map[string]string
	errs    []located
	advice  []string        // warnings of single values
	bad     map[string]bool // paths with an error
	kinds   map[string]kindError
}

// kindError is a value of another JSON type.
type kindError struct {
	err *FieldError
	got string
}

type removedKey struct{ path, reason string }

type located struct {
	offset int
	err    *FieldError
}

func newSource(name string, data []byte, getenv func(string) string) *source {
	return &source{
		name: name, data: data, getenv: getenv, at: map[string]int{}, unset: map[string][]string{}, written: map[string]string{}, bad: map[string]bool{},
		kinds: map[string]kindError{},
	}
}

func (s *source) fail(path, format string, args ...any) {
	s.failAt(s.offset(path), path, format, args...)
}

func (s *source) failAt(offset int, path, format string, args ...any) {
	s.failAs(s.writtenAs(path), offset, path, format, args...)
}

func (s *source) failAs(name string, offset int, path, format string, args ...any) {
	s.bad[path] = true
	if len(s.errs) < maxErrors {
		s.errs = append(s.errs, located{offset, s.place(offset, name, fmt.Sprintf(format, args...))})
	}
}

// failKind refuses a value of another JSON type.
func (s *source) failKind(path, got, want string) {
	s.fail(path, "got %s, want %s", got, want)
	if n := len(s.errs); n < maxErrors {
		s.kinds[path] = kindError{s.errs[n-1].err, got}
	}
}

// expects names the allowed values in the error for a value of another JSON type.
func (s *source) expects(path, want string) {
	if e, wrong := s.kinds[path]; wrong {
		e.err.Problem = fmt.Sprintf("got %s, want %s", e.got, want)
	}
}

// isGiven reports whether the file or a flag has a value.
func (s *source) isGiven(path string) bool {
	_, given := s.at[path]
	return given
}

func (s *source) failed(path string) bool { return s.bad[path] }

func (s *source) warning(path, format string, args ...any) string {
	return s.place(s.offset(path), s.writtenAs(path), fmt.Sprintf(format, args...)).Error()
}

func (s *source) err() error {
	if len(s.errs) == 0 {
		return nil
	}
	slices.SortStableFunc(s.errs, func(a, b located) int { return a.offset - b.offset })
	e := &Error{}
	for _, l := range s.errs {
		e.Fields = append(e.Fields, l.err)
	}
	return e
}

// offset falls back to the nearest enclosing object in the file.
func (s *source) offset(path string) int {
	for path != "" {
		if n, ok := s.at[path]; ok {
			return n
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return s.at[""]
}

func (s *source) place(offset int, name, problem string) *FieldError {
	e := &FieldError{File: s.name, Field: name, Problem: problem}
	if strings.HasPrefix(e.Field, "--") {
		e.File = "" // a flag overrides the file
		return e
	}
	if s.data == nil {
		return e
	}
	before := s.data[:min(offset, len(s.data))]
	e.Line = 1 + bytes.Count(before, []byte("\n"))
	e.Col = 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	return e
}

func (s *source) writtenAs(path string) string {
	if name, ok := s.written[path]; ok {
		return name
	}
	return path
}

func (s *source) forget(path string) {
	below := func(p string) bool {
		return p == path || strings.HasPrefix(p, path+".") || strings.HasPrefix(p, path+"[")
	}
	maps.DeleteFunc(s.unset, func(p string, _ []string) bool { return below(p) })
}

// expand records missing variables at path. A default from the code has its field's path, so that errors explain a
// missing key like a present one.
func (s *source) expand(path, value string) string {
	delete(s.unset, path)
	out, unset, err := expandEnv(value, s.getenv)
	if err != nil {
		s.fail(path, "%v", err)
	}
	if len(unset) > 0 {
		s.unset[path] = unset
	}
	return out
}

// A wrong path is not read whole.
const maxSecret = 64 << 10

// readSecret drops line breaks at the end. Errors never show the content.
func readSecret(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("reading a secret: %w", err)
	}
	defer func() { _ = f.Close() }()
	content, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	text := strings.TrimRight(string(content), "\r\n")
	switch {
	case err != nil:
		return "", fmt.Errorf("reading a secret: %w", err)
	case len(content) > maxSecret:
		return "", fmt.Errorf("reading a secret: %s has more than %d bytes", path, maxSecret)
	case text == "" || !utf8.ValidString(text):
		return "", fmt.Errorf("reading a secret: %s is empty, or no text", path)
	}
	return text, nil
}

// checkWritten refuses a secret or address with a variable as shells, batch files and other programs write it. It reads the text of the
// file alone: what a variable holds may have any form. No error shows it: a password may look like one.
func (s *source) checkWritten(path, text string, of reflect.Type) {
	isAddress := of == reflect.TypeFor[DSN]() || of == reflect.TypeFor[Endpoint]() || slices.Contains(plainAddresses, withoutIndex(path))
	if isAddress && unbracedWithin.MatchString(text) || (isAddress || of == reflect.TypeFor[Secret]()) && unbraced.MatchString(text) {
		s.fail(path, "got the name of a variable in another form, want ${NAME}; a text that looks like one can come from a variable or a file")
	}
}

// plainAddresses are not secret.
var plainAddresses = []string{
	"dingtalk.client_id", "dingtalk.api_base", "dingtalk.oapi_base", "admin.dingtalk_login.redirect_uri", "admin.dingtalk_login.authorize_url",
}

// unbracedWithin is the name of a variable in a part of an address.
var unbracedWithin = regexp.MustCompile(`[:/@=.]\$\(?[A-Z_][A-Z0-9_]+\)?(?:[:/@.?&]|$)`)

var unbraced = regexp.MustCompile(`^\s*(?:\$(?:env:)?[A-Za-z_]\w*|\$\([A-Za-z_]\w*\)|%[A-Za-z_]\w*%|\{\{.*\}\}|\{[A-Z_][A-Z0-9_]+\}|(?:env:|os\.environ/)[A-Z_][A-Z0-9_]*)\s*$`)

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expandEnv replaces ${NAME}. ${NAME:-default} has a default for unset or empty variables, ${file:PATH} is a file's
// content, and $${ stands for ${ itself. The result is not expanded again. unset lists empty variables without a
// default. Errors never show the value, which may be a secret.
func expandEnv(value string, getenv func(string) string) (out string, unset []string, err error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(value, "${")
		if !found {
			b.WriteString(value)
			return b.String(), unset, nil
		}
		if cut, ok := strings.CutSuffix(before, "$"); ok {
			b.WriteString(cut + "${")
			value = rest
			continue
		}
		ref, after, closed := strings.Cut(rest, "}")
		if !closed {
			return "", nil, errors.New("got ${ without }, want ${NAME} or ${NAME:-default}; write $${ for the two characters themselves")
		}
		if path, isFile := strings.CutPrefix(ref, "file:"); isFile {
			content, err := readSecret(path)
			if err != nil {
				return "", nil, err
			}
			b.WriteString(before + content)
			value = after
			continue
		}
		name, fallback, hasDefault := strings.Cut(ref, ":-")
		if !envName.MatchString(name) {
			return "", nil, errors.New("got ${...} without a valid variable name, want ${NAME} or ${NAME:-default}; write $${ for the two characters themselves")
		}
		got := getenv(name)
		switch {
		case got == "" && hasDefault:
			got = fallback
		case got == "":
			unset = append(unset, name)
		}
		b.WriteString(before + got)
		value = after
	}
}
