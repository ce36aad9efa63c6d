// Package strict reads a file of JSON with comments into structs, and reports each mistake with its file, line and column. It knows no
// key: the types that it fills say what their keys are. A value has a path, such as llm.models[0].api_key, under which decoding and the
// later checks find its place in the file.
package strict

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Source is one file with the places of its values, the environment variables that it lacked, and the mistakes and warnings so far.
type Source struct {
	name    string
	data    []byte
	getenv  func(string) string
	rules   Rules
	at      map[string]int      // path of a value -> its offset in data
	unset   map[string][]string // path of a value -> its empty variables without a default
	removed []removedKey        // given keys that are no more
	// written holds a value's name in the file or on the command line, if it is not its path.
	written  map[string]string
	errs     []located
	advice   []string        // warnings of single values
	warnings []string        // warnings of values that do not fit together
	bad      map[string]bool // paths with an error
	kinds    map[string]kindError
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

// NewSource returns a source without mistakes. Errors show the name. Nil data stands for no file.
func NewSource(name string, data []byte, getenv func(string) string, rules Rules) *Source {
	return &Source{
		name: name, data: data, getenv: getenv, rules: rules, at: map[string]int{}, unset: map[string][]string{}, written: map[string]string{},
		bad: map[string]bool{}, kinds: map[string]kindError{},
	}
}

// HasFile reports whether there is a file, even an empty one.
func (s *Source) HasFile() bool { return s.data != nil }

// Getenv returns an environment variable.
func (s *Source) Getenv(name string) string { return s.getenv(name) }

// Fail records a mistake of the value at path.
func (s *Source) Fail(path, format string, args ...any) {
	s.FailAt(s.Offset(path), path, format, args...)
}

// FailAt is Fail with another place in the file.
func (s *Source) FailAt(offset int, path, format string, args ...any) {
	s.failAs(s.WrittenAs(path), offset, path, format, args...)
}

func (s *Source) failAs(name string, offset int, path, format string, args ...any) {
	s.bad[path] = true
	if len(s.errs) < maxErrors {
		s.errs = append(s.errs, located{offset, s.place(offset, name, fmt.Sprintf(format, args...))})
	}
}

// FailVariable records a mistake of an environment variable.
func (s *Source) FailVariable(name, format string, args ...any) {
	s.errs = append(s.errs, located{0, &FieldError{File: "environment", Field: name, Problem: fmt.Sprintf(format, args...)}})
}

// FailKind refuses a value of another JSON type.
func (s *Source) FailKind(path, got, want string) {
	s.Fail(path, "got %s, want %s", got, want)
	if n := len(s.errs); n < maxErrors {
		s.kinds[path] = kindError{s.errs[n-1].err, got}
	}
}

// Expects names the allowed values in the error for a value of another JSON type.
func (s *Source) Expects(path, want string) {
	if e, wrong := s.kinds[path]; wrong {
		e.err.Problem = fmt.Sprintf("got %s, want %s", e.got, want)
	}
}

// Warn records a value that can work, at its place. The same warning is recorded once: that of a flag covers all values that it sets.
func (s *Source) Warn(path, format string, args ...any) {
	s.addWarning(s.warning(path, format, args...))
}

// WarnVariable records an environment variable that can work.
func (s *Source) WarnVariable(name, problem string) {
	s.addWarning((&FieldError{File: "environment", Field: name, Problem: problem}).Error())
}

func (s *Source) addWarning(w string) {
	if !slices.Contains(s.warnings, w) {
		s.warnings = append(s.warnings, w)
	}
}

func (s *Source) warning(path, format string, args ...any) string {
	return s.place(s.Offset(path), s.WrittenAs(path), fmt.Sprintf(format, args...)).Error()
}

// WarnOfRemoved records the given keys that are no more.
func (s *Source) WarnOfRemoved() {
	for _, key := range s.removed {
		s.Warn(key.path, "does nothing any more: %s", key.reason)
	}
}

// Warnings returns what Warn recorded, and behind it what Advise did.
func (s *Source) Warnings() []string {
	for _, w := range s.advice {
		s.addWarning(w)
	}
	s.advice = nil
	return s.warnings
}

// IsGiven reports whether the file or a flag has a value.
func (s *Source) IsGiven(path string) bool {
	_, given := s.at[path]
	return given
}

// IsNull reports whether the file says null for a value.
func (s *Source) IsNull(path string) bool {
	return s.IsGiven(path) && bytes.HasPrefix(s.data[s.at[path]:], []byte("null"))
}

// Give notes a value that a flag sets.
func (s *Source) Give(path, flag string) { s.at[path], s.written[path] = 0, flag }

// Move notes that the value at path was read from another one.
func (s *Source) Move(from, path string) { s.at[path], s.written[path] = s.at[from], from }

// Failed reports whether a value has a mistake.
func (s *Source) Failed(path string) bool { return s.bad[path] }

// HasFailed reports whether there is a mistake.
func (s *Source) HasFailed() bool { return len(s.errs) > 0 }

// Err returns nil, or an *Error with all mistakes in the order of the file.
func (s *Source) Err() error {
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

// Offset returns the place of a value in the file, in bytes; for one that the file lacks that of the nearest object around it.
func (s *Source) Offset(path string) int {
	for path != "" {
		if n, ok := s.at[path]; ok {
			return n
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return s.at[""]
}

// Line returns the line of a value, from 1; 0 without a file.
func (s *Source) Line(path string) int { return s.lineOf(s.Offset(path)) }

func (s *Source) lineOf(offset int) int { return s.place(offset, "", "").Line }

func (s *Source) place(offset int, name, problem string) *FieldError {
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

// WrittenAs returns the name of a value in the file or on the command line.
func (s *Source) WrittenAs(path string) string {
	if name, ok := s.written[path]; ok {
		return name
	}
	return path
}

// Unset returns the empty variables without a default that a value names.
func (s *Source) Unset(path string) []string { return s.unset[path] }

// PathsWithUnset lists the values with such variables, sorted.
func (s *Source) PathsWithUnset() []string { return slices.Sorted(maps.Keys(s.unset)) }

// Forget drops the empty variables of a default at path, and below it, that the file replaces.
func (s *Source) Forget(path string) {
	below := func(p string) bool {
		return p == path || strings.HasPrefix(p, path+".") || strings.HasPrefix(p, path+"[")
	}
	maps.DeleteFunc(s.unset, func(p string, _ []string) bool { return below(p) })
}
