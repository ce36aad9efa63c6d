package config

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// FieldError is one thing that is wrong in a config file.
type FieldError struct {
	File      string // as it was named on the command line; empty for a config made in code
	Line, Col int    // from 1, in characters; 0 when there is no place to show
	Field     string // as in agent.compaction.reserve_tokens; empty when the file itself is wrong
	Problem   string // what was found and what is wanted
}

// Error returns file:line:col: field: problem, without what is empty.
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

// maxErrors bounds what one reading reports; a file with more mistakes is some other file.
const maxErrors = 100

// Error is everything that is wrong in a config file, up to a hundred things, in the order of the file.
type Error struct{ Fields []*FieldError }

// Error returns one line for each.
func (e *Error) Error() string {
	lines := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

// source remembers where in the file each value came from, and which variables of the environment it lacked, so that a
// check made on the finished Config can still say where and why. Paths are as in llm.models[0].api_key.
type source struct {
	name   string
	data   []byte
	getenv func(string) string
	at     map[string]int      // path of a value -> its offset in data
	unset  map[string][]string // path of a value -> variables without default that it named and that are empty
	// written is how a value is called in the file, or on the command line, where that is not its path.
	written map[string]string
	errs    []located
	bad     map[string]bool // paths that errs has
}

type located struct {
	offset int
	err    *FieldError
}

func newSource(name string, data []byte, getenv func(string) string) *source {
	return &source{
		name: name, data: data, getenv: getenv, at: map[string]int{}, unset: map[string][]string{}, written: map[string]string{}, bad: map[string]bool{},
	}
}

// fail records a problem of the value at path.
func (s *source) fail(path, format string, args ...any) {
	s.failAt(s.offset(path), path, format, args...)
}

// failAt records a problem at an offset, for what has no value to point at: keys, syntax.
func (s *source) failAt(offset int, path, format string, args ...any) {
	s.failAs(s.writtenAs(path), offset, path, format, args...)
}

// failAs is failAt for a value that is called otherwise at this place.
func (s *source) failAs(name string, offset int, path, format string, args ...any) {
	s.bad[path] = true
	if len(s.errs) < maxErrors {
		s.errs = append(s.errs, located{offset, s.place(offset, name, fmt.Sprintf(format, args...))})
	}
}

// failed reports whether the value at path was already refused.
func (s *source) failed(path string) bool { return s.bad[path] }

// warning formats a remark on a value as an error about it would look.
func (s *source) warning(path, format string, args ...any) string {
	return s.place(s.offset(path), s.writtenAs(path), fmt.Sprintf(format, args...)).Error()
}

// err returns everything recorded so far as a *Error, or nil.
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

// offset returns where the value at path is, or for one that is not in the file, the nearest object around its place.
func (s *source) offset(path string) int {
	for path != "" {
		if n, ok := s.at[path]; ok {
			return n
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return s.at[""]
}

// place is a problem at an offset, of a field that is called name there.
func (s *source) place(offset int, name, problem string) *FieldError {
	e := &FieldError{File: s.name, Field: name, Problem: problem}
	if strings.HasPrefix(e.Field, "--") {
		e.File = "" // a flag: what the file says does not count
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

// writtenAs is how the value at path is called where it was given.
func (s *source) writtenAs(path string) string {
	if name, ok := s.written[path]; ok {
		return name
	}
	return path
}

// forget drops what was noted of the values below path, when the file's own value takes their place.
func (s *source) forget(path string) {
	below := func(p string) bool {
		return p == path || strings.HasPrefix(p, path+".") || strings.HasPrefix(p, path+"[")
	}
	maps.DeleteFunc(s.unset, func(p string, _ []string) bool { return below(p) })
}

// expand replaces the variables in a value, and notes at path those that are missing. A default from the code gets the
// path of the field it is for, so that a key left out of the file is explained like one that is there.
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

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expandEnv replaces ${NAME} by the variable's value and ${NAME:-default} by its value or, when it is unset or empty, the
// default; $${ stands for ${ itself. What comes out is not expanded again. unset lists the empty ones without a default.
// No error shows the value: it may be a secret.
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
		name, fallback, hasDefault := strings.Cut(ref, ":-")
		if !envName.MatchString(name) {
			return "", nil, errors.New("got ${...} around what is not the name of a variable, want ${NAME} or ${NAME:-default}; write $${ for the two characters themselves")
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
