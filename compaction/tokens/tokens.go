// Package tokens counts and shortens text by one byte pair table for all providers; [Calibrate] corrects it by their
// reports. The table is the one of tiktoken-go, whose counts are the same.
package tokens

import (
	"fmt"
	"unicode/utf8"
)

// MessageOverhead is the tokens of a chat message besides its text.
const MessageOverhead = 4

// Counter counts tokens. It is safe for concurrent use.
type Counter struct{ table *table }

// NewCounter loads the o200k_base table, once for the process.
func NewCounter() (*Counter, error) {
	t, err := loadTable()
	if err != nil {
		return nil, fmt.Errorf("load token table: %w", err)
	}
	return &Counter{t}, nil
}

// Count is the number of tokens of a text, in linear time. Invalid bytes count as the replacement character.
func (c *Counter) Count(text string) int {
	if !utf8.ValidString(text) {
		text = string([]rune(text))
	}
	n := 0
	for len(text) > 0 {
		end := wordLength(text)
		n += c.table.count(text[:end])
		text = text[end:]
	}
	return n
}

// Bounds and inertia of the calibration: one odd report must not swing the budget.
const (
	calMin, calMax = 0.5, 3.0
	calWeight      = 0.3
)

// Calibrate moves factor, the provider's counts relative to ours, towards those of one call. A zero count changes
// nothing.
func Calibrate(factor float64, observed, estimated int) float64 {
	if observed <= 0 || estimated <= 0 {
		return factor
	}
	seen := min(max(float64(observed)/float64(estimated), calMin), calMax)
	return factor + calWeight*(seen-factor)
}

// farBelow is the least difference, in tokens, of a report that is far below our own count.
const farBelow = 1000

// IsMeasured reports whether a provider's count of a request can be one, beside our own count. A server that cuts long
// requests in silence reports the rest, and some report constants.
func IsMeasured(observed, estimated int) bool {
	if observed <= 0 {
		return false
	}
	low := float64(observed) < calMin*float64(estimated) && estimated-observed > farBelow
	return !low && float64(observed) <= calMax*float64(estimated)+farAbove
}

// farAbove is the room, in tokens, for instructions that a proxy adds.
const farAbove = 32 << 10
