package manage

import (
	"context"
	"errors"
	"fmt"

	"ebb/memory/pages"
	"ebb/sessions"
)

// filesOf are the rights of a person over files that the person sent or kept, and over all in the person's private chat. other is the second id of
// the person; empty: not known.
func filesOf(a Actor, key sessions.Key, other sessions.UserID) sessions.FileRights {
	return sessions.FileRights{IDs: []sessions.UserID{a.Person, other}, All: a.Reader.Private && a.Reader.Key == key}
}

// KeepFile keeps a file in the turn that asks. Members replace the versions that they may delete; see [Manager.ForgetFile]. The replacement of
// another person's is in the audit.
func (m *Manager) KeepFile(ctx context.Context, a Actor, f sessions.KeptFile, other sessions.UserID) (sessions.Keeping, error) {
	if a.Reader.Key != f.Key || a.Asking.Lease.Key != f.Key {
		return sessions.Keeping{}, NoTurn
	}
	kept, err := m.cfg.Files.KeepFile(ctx, a.Asking.Lease, f, filesOf(a, f.Key, other))
	if !errors.Is(err, sessions.ErrOthersFile) || !a.administers(f.Key) {
		return kept, err
	}
	what := pages.Action{Action: ReplacedFile, Key: f.Key, Detail: fmt.Sprintf("file %d", kept.ID)}
	return recorded(ctx, m, a, false, what, func(ctx context.Context) (sessions.Keeping, error) {
		return m.cfg.Files.KeepFile(ctx, a.Asking.Lease, f, sessions.FileRights{All: true})
	})
}

// ForgetFile deletes a kept file. Operators delete those of all sessions. Members delete those that they sent or kept, and all in their private
// chat; administrators those of their group. It returns [NotTheirs] for another person's. The end of another person's is in the audit. other is
// the second id of the person who acts; empty: not known.
func (m *Manager) ForgetFile(ctx context.Context, a Actor, f sessions.KeptFile, other sessions.UserID) error {
	own := filesOf(a, f.Key, other).Allow(f)
	if a.Role != Operator && (a.Reader.Key != f.Key || !own && !a.administers(f.Key)) {
		return NotTheirs
	}
	what := pages.Action{Action: ForgotFile, Key: f.Key, Detail: fmt.Sprintf("file %d", f.ID)}
	return m.record(ctx, a, own, what, func(ctx context.Context) error { return m.cfg.Files.ForgetFile(ctx, f.Key, f.ID) })
}
