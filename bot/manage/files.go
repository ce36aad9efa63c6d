package manage

import (
	"context"
	"fmt"
	"slices"

	"ebb/memory/pages"
	"ebb/sessions"
)

// Files deletes kept files.
type Files interface {
	// ForgetFile returns [sessions.ErrNotFound] without such a file.
	ForgetFile(ctx context.Context, key sessions.Key, id int64) error
}

// ForgetFile deletes a kept file. Operators delete those of all sessions. Members delete those that they sent or kept, and all in their private
// chat; administrators those of their group. It returns [NotTheirs] for another person's. The end of another person's is in the audit. other is
// the second id of the person who acts; empty: not known.
func (m *Manager) ForgetFile(ctx context.Context, a Actor, f sessions.KeptFile, other sessions.UserID) error {
	own := a.Reader.Private && a.Reader.Key == f.Key || isOf(f, a.Person) || isOf(f, other)
	if a.Role != Operator && (a.Reader.Key != f.Key || !own && a.Role < GroupAdmin) {
		return NotTheirs
	}
	what := pages.Action{Action: ForgotFile, Key: f.Key, Detail: fmt.Sprintf("file %d", f.ID)}
	return m.record(ctx, a, own, what, func(ctx context.Context) error { return m.cfg.Files.ForgetFile(ctx, f.Key, f.ID) })
}

func isOf(f sessions.KeptFile, person sessions.UserID) bool {
	return person != "" && slices.Contains([]sessions.UserID{f.SentBy, f.KeptBy}, person)
}
