package rig

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

// LogLine is one line of a gateway's log. A line that is no JSON object, such as a panic's, has only Raw.
type LogLine struct {
	Replica string
	Level   string
	Message string
	Fields  map[string]any
	Raw     string
}

func parseLogLine(replica, raw string) LogLine {
	l := LogLine{Replica: replica, Raw: raw}
	if json.Unmarshal([]byte(raw), &l.Fields) == nil {
		l.Level, _ = l.Fields["level"].(string)
		l.Message, _ = l.Fields["message"].(string)
	}
	return l
}

// IntField is a field's value, or -1 for a missing one.
func (l LogLine) IntField(field string) int {
	n, ok := l.Fields[field].(float64)
	if !ok {
		return -1
	}
	return int(n)
}

// LogBook collects the lines of all gateways.
type LogBook struct {
	mu      sync.Mutex
	lines   []LogLine
	changed chan struct{}
}

// NewLogBook returns an empty book.
func NewLogBook() *LogBook { return &LogBook{changed: make(chan struct{})} }

// The book drops lines beyond this number.
const keepLines = 20_000

// ReadLog reads a process's log to its end: a full pipe would stop the process.
func (b *LogBook) ReadLog(replica string, r io.Reader) error {
	for in := bufio.NewReader(r); ; {
		raw, err := in.ReadString('\n')
		if raw = strings.TrimSpace(raw); raw != "" {
			b.addLine(parseLogLine(replica, raw))
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the log of gateway %s: %w", replica, err)
		}
	}
}

func (b *LogBook) addLine(l LogLine) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.lines) < keepLines {
		b.lines = append(b.lines, l)
	}
	close(b.changed)
	b.changed = make(chan struct{})
}

// WaitLine waits for a replica's first line with the message.
func (b *LogBook) WaitLine(ctx context.Context, replica, message string) (LogLine, error) {
	for from := 0; ; {
		b.mu.Lock()
		lines, changed := b.lines, b.changed
		b.mu.Unlock()
		for ; from < len(lines); from++ {
			if lines[from].Replica == replica && lines[from].Message == message {
				return lines[from], nil
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return LogLine{}, fmt.Errorf("no line %q in the log of gateway %s: %w", message, replica, context.Cause(ctx))
		}
	}
}

// Follow calls each with the lines of all replicas that have the message, until ctx ends.
func (b *LogBook) Follow(ctx context.Context, message string, each func(LogLine)) {
	for from := 0; ; {
		b.mu.Lock()
		lines, changed := b.lines, b.changed
		b.mu.Unlock()
		for ; from < len(lines); from++ {
			if lines[from].Message == message {
				each(lines[from])
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// Lines returns the lines of all replicas so far that have the message.
func (b *LogBook) Lines(message string) (found []LogLine) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.lines {
		if l.Message == message {
			found = append(found, l)
		}
	}
	return found
}

// LastLines returns the newest n lines, as written.
func (b *LogBook) LastLines(n int) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for _, l := range b.lines[max(0, len(b.lines)-n):] {
		out = append(out, l.Replica+": "+l.Raw)
	}
	return out
}
