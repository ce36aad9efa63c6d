package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ebb/memory/text"
)

// checkFacts reports lines of a replica's log that state a fact twice.
func (w *world) checkFacts(r *replica) {
	for line := range strings.Lines(r.log()) {
		if twice := repeatedFact(line); twice != "" {
			w.t.Errorf("replica %s logged a fact twice, %s: %s", r.name, twice, line)
		}
	}
}

// repeatedFact names a fact that a log line states twice, or is empty. Session, message, term and schedule have one field each.
// The error must not have their values, nor two wraps with the same words. "read session" and "reading session" are the same words.
func repeatedFact(line string) string {
	var fields map[string]any
	d := json.NewDecoder(bytes.NewReader([]byte(line)))
	d.UseNumber() // a term of 12 stays 12
	if d.Decode(&fields) != nil {
		return "" // text of another program, such as PostgreSQL
	}
	for _, name := range []string{"session", "msg_id", "term", "schedule"} {
		if strings.Count(line, fmt.Sprintf("%q:", name)) > 1 {
			return "the key " + name
		}
	}
	failure, _ := fields["error"].(string)
	if failure == "" {
		return ""
	}
	for _, name := range []string{"session", "msg_id"} {
		if value, _ := fields[name].(string); value != "" && strings.Contains(failure, value) {
			return "the field " + name
		}
	}
	for _, name := range []string{"term", "schedule", "reply", "event"} {
		if number, ok := fields[name]; ok && text.ContainsWord(failure, fmt.Sprintf("%s %v", name, number)) {
			return "the field " + name
		}
	}
	var wraps []string
	for part := range strings.SplitSeq(failure, ": ") {
		var words []string
		for w := range strings.FieldsSeq(strings.ToLower(part)) {
			if w != "a" && w != "an" && w != "the" {
				words = append(words, text.Stem(w))
			}
		}
		wrap := strings.Join(words, " ")
		if slices.Contains(wraps, wrap) {
			return fmt.Sprintf("the wrap %q", part)
		}
		wraps = append(wraps, wrap)
	}
	return ""
}

func TestLogLinesThatStateAFactTwiceAreFound(t *testing.T) {
	for line, want := range map[string]string{
		`{"session":"bot1/cid7","error":"committing a turn of session bot1/cid7: no lease"}`: "the field session",
		`{"session":"bot1/cid7","term":3,"error":"committing a turn at term 3: no lease"}`:   "the field term",
		`{"session":"bot1/cid7","event":2,"session":"bot1/cid7"}`:                            "the key session",
		`{"msg_id":"msg77","error":"storing message msg77: timeout"}`:                        "the field msg_id",
		`{"schedule":3,"error":"reading the creator of schedule 3: no JSON"}`:                "the field schedule",
		`{"schedule":3,"error":"reading the creator of schedule 31: no JSON"}`:               "",
		`{"error":"read session: reading the session: timeout"}`:                             `the wrap "reading the session"`,
		`{"session":"bot1/cid7","term":3,"error":"committing a turn: 31 events: no lease"}`:  "",
		`{"session":"bot1/cid7","term":3,"error":"committing a turn at term 31: no lease"}`:  "",
		`{"session":"bot1/cid7","message":"Turn done in bot1/cid7"}`:                         "",
		`session bot1/cid7`: "",
	} {
		if got := repeatedFact(line); got != want {
			t.Errorf("%s states %q twice, want %q", line, got, want)
		}
	}
}
