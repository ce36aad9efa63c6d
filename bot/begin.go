package bot

import (
	"context"
	"errors"
	"sync"

	"ebb/sessions"
)

// unsure are the leases under which the last try to begin a turn failed: it may have counted an attempt all the same.
// The zero value is ready.
type unsure struct {
	mu   sync.Mutex
	last map[sessions.Key]sessions.Lease
}

func (u *unsure) of(l sessions.Lease) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.last[l.Key] == l
}

// note keeps what came of a try.
func (u *unsure) note(l sessions.Lease, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err == nil || errors.Is(err, sessions.ErrLeaseLost) {
		delete(u.last, l.Key)
		return
	}
	if u.last == nil {
		u.last = map[sessions.Key]sessions.Lease{}
	}
	u.last[l.Key] = l
}

// begin opens a turn. However often that fails, one attempt is counted: trouble with the storage says nothing against
// the messages.
func (b *Bot) begin(ctx context.Context, l sessions.Lease) (sessions.View, error) {
	open := b.store.Begin
	if b.unsure.of(l) {
		open = b.store.BeginAgain
	}
	v, err := open(ctx, l, b.cfg.mergeLimit())
	b.unsure.note(l, err)
	return v, err
}
