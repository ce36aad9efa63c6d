package sql

import (
	"cmp"
	"crypto/sha256"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"ebb/memory"
	"ebb/memory/text"
	"ebb/sessions"
)

// fold makes texts comparable that differ in case or in the width of their characters only.
func fold(s string) string { return cases.Fold().String(norm.NFKC.String(s)) }

// normal is what two contents have in common when they say the same in the same words.
func normal(content string) string { return text.Normalize(content) }

// factHash is what makes two drafts of one scope the same fact. A fact about a person is the same only if it was
// learnt in the same conversation, or by the same robot in private, for who may read it depends on where it was said. What
// two people are told of in the same words is two facts.
func factHash(d memory.Draft, robot sessions.RobotCode) []byte {
	text := normal(d.Content)
	if text == "" { // nothing but punctuation
		text = d.Content
	}
	switch {
	case d.Scope == memory.ScopeUser:
		text += "\x00" + cmp.Or(d.SourceGroup, robotSessions(robot))
	case d.SubjectID != "":
		text += "\x00" + string(d.SubjectID)
	}
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}
