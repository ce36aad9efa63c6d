package facts

import (
	"cmp"
	"crypto/sha256"

	"ebb/memory"
	"ebb/memory/text"
	"ebb/sessions"
	"ebb/sql/pg"
)

// Hash identifies a fact within a scope. A fact about a person includes the conversation, or the robot in private,
// since its readers depend on the place. The same words about two people are two facts.
func Hash(d memory.Draft, robot sessions.RobotCode) []byte {
	said := text.Normalize(d.Content)
	if said == "" { // only punctuation
		said = d.Content
	}
	switch {
	case d.Scope == memory.ScopeUser:
		said += "\x00" + cmp.Or(d.SourceGroup, pg.SessionPrefix(robot))
	case d.SubjectID != "":
		said += "\x00" + string(d.SubjectID)
	}
	sum := sha256.Sum256([]byte(said))
	return sum[:]
}
