package strict

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Want refuses the value at path unless ok. The error shows got, and what to write instead. A value with a mistake gets no second one.
func (s *Source) Want(ok bool, path string, got any, format string, args ...any) {
	if !ok && !s.Failed(path) {
		s.Fail(path, "got %v, want %s", got, fmt.Sprintf(format, args...))
	}
}

// Advise warns of a value that can work, and is probably a mistake, unless ok.
func (s *Source) Advise(ok bool, path, format string, args ...any) {
	if !ok && !s.Failed(path) {
		s.advice = append(s.advice, s.warning(path, format, args...))
	}
}

// Required refuses an empty value, with its variables that are empty.
func (s *Source) Required(path, value, what string) {
	switch vars := s.unset[path]; {
	case value != "" || s.Failed(path):
	case len(vars) > 0:
		s.Fail(path, "is empty, want %s: set %s in the environment", what, strings.Join(vars, " and "))
	default:
		s.Fail(path, "is empty, want %s", what)
	}
}

// OneOf refuses a value that is none of the choices.
func (s *Source) OneOf(path, got string, choices []string) {
	s.Expects(path, Quoted(choices))
	s.Want(slices.Contains(choices, got), path, strconv.Quote(got), "%s", Quoted(choices))
}

// Between refuses a number below low or above high.
func (s *Source) Between(path string, got, low, high int) {
	s.Want(got >= low && got <= high, path, got, "%d to %d", low, high)
}

// Positive refuses a duration of 0 and less.
func (s *Source) Positive(path string, got time.Duration) {
	s.Want(got > 0, path, DurationText(got), "more than 0s")
}
