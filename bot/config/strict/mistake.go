package strict

import (
	"fmt"
	"strings"
)

// FieldError is one fault of a file.
type FieldError struct {
	File      string // as named on the command line; empty for values built in code
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

// Error holds all faults of a file, at most a hundred, in the order of the file.
type Error struct{ Fields []*FieldError }

// Error returns one line for each fault.
func (e *Error) Error() string {
	lines := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}
