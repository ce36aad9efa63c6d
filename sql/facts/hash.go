package facts

import (
	"cmp"
	"crypto/sha256"

	"ebb/memory"
	"ebb/memory/text"
	"ebb/sessions"
	"ebb/sql/pg"
)

// Hash is what makes two drafts of one scope the same fact. A fact about a person is the same only if it was
// learnt in the same conversation, or by the same robot in private, for who may read it depends on where it was said. What
// two people are told of in the same words is two facts.
func Hash(d memory.Draft, robot sessions.RobotCode) []byte {
	said := text.Normalize(d.Content)
	if said == "" { // nothing but punctuation
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
