package off

import (
	"context"

	"ebb/sessions"
)

// Files keep no files of replies, and refuse each.
type Files struct{}

// Keep implements sendfile.Store.
func (Files) Keep(context.Context, sessions.Lease, int64, sessions.File) (int64, error) {
	return 0, sessions.ErrRefused
}

// Kept implements sendfile.Store.
func (Files) Kept(context.Context, sessions.Key, []int64) ([]sessions.File, error) { return nil, nil }

// Body implements outbox.Files.
func (Files) Body(context.Context, sessions.Key, int64) ([]byte, error) {
	return nil, sessions.ErrNotFound
}

// Delete implements outbox.Files.
func (Files) Delete(context.Context, sessions.Key, int64) error { return nil }

// Kept keeps no files for conversations.
type Kept struct{}

// Files implements knowledge.Store.
func (Kept) Files(context.Context, sessions.Key) ([]sessions.KeptFile, error) { return nil, nil }

// KeepFile implements manage.Files.
func (Kept) KeepFile(context.Context, sessions.Lease, sessions.KeptFile, sessions.FileRights) (sessions.Keeping, error) {
	return sessions.Keeping{}, ErrOff
}

// Page implements upkeep.Pages.
func (Kept) Page(context.Context, sessions.Key, sessions.PageID) (string, error) {
	return "", sessions.ErrNotFound
}

// WithholdPages implements upkeep.Pages.
func (Kept) WithholdPages(context.Context, sessions.Key, sessions.Withholding) error { return ErrOff }

// ForgetFile implements manage.Files.
func (Kept) ForgetFile(context.Context, sessions.Key, int64) error { return sessions.ErrNotFound }
