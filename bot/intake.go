package bot

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/rs/zerolog"

	"ebb/sessions"
)

// accept is steps 1 and 2: it stores a message in the log, and returns nil only after the commit. Then it wakes the
// session: here if this replica holds the lease, otherwise by a notification. A message that access rules refuse is
// acknowledged and not stored.
func (b *Bot) accept(ctx context.Context, m sessions.Message) error {
	asSent := b.keyOf(m)
	m, seen, err := b.identified(ctx, m)
	if err != nil {
		b.metrics.accepted.WithLabelValues("error").Inc()
		return fmt.Errorf("identify the sender of message %s: %w", m.ID, err)
	}
	if why := b.cfg.Access.Check(m); why != "" {
		b.refuse(ctx, m, why)
		return nil
	}
	key, err := b.acceptedKey(ctx, m, asSent, seen)
	if err != nil {
		b.metrics.accepted.WithLabelValues("error").Inc()
		return err
	}
	return b.keep(ctx, key, m)
}

// keep stores an admitted message in the log of a session, and wakes the session.
func (b *Bot) keep(ctx context.Context, key sessions.Key, m sessions.Message) error {
	m.Text = b.views.Quoted(m) + m.Text
	done, err := b.store.Accept(ctx, b.leases.Owner(), key, m)
	if err != nil {
		b.metrics.accepted.WithLabelValues("error").Inc()
		return fmt.Errorf("store message %s of session %s: %w", m.ID, key, err)
	}
	outcome := "duplicate"
	if done.New {
		outcome = "new"
		b.restarts.note(key, done.EventID)
	} else {
		b.restarts.redelivered.Add(1)
	}
	b.metrics.accepted.WithLabelValues(outcome).Inc()
	if done.Clash {
		zerolog.Ctx(ctx).Warn().EmbedObject(key).Str("msg_id", string(m.ID)).Msg("Sender id arrived with a second staff id")
	}
	zerolog.Ctx(ctx).Debug().EmbedObject(key).Str("msg_id", string(m.ID)).Str("outcome", outcome).Msg("Message accepted")
	b.leases.Learn(done.Lease)
	if done.New && done.Lease.Owner == b.leases.Owner() {
		b.runner.Wake(key)
	}
	return nil
}

// identified fills in the staff id of an organization member from earlier frames that had both ids. It also returns the
// staff ids of these frames, where the message needs them.
func (b *Bot) identified(ctx context.Context, m sessions.Message) (_ sessions.Message, seen []sessions.UserID, err error) {
	if m.EncryptedID == "" || m.StaffID != "" && !b.hasMemberSession(m) {
		return m, nil, nil
	}
	seen, err = b.store.StaffIDs(ctx, m.RobotCode, m.EncryptedID)
	if m.StaffID == "" && len(seen) == 1 {
		m.SenderID, m.StaffID = seen[0], seen[0]
	}
	return m, seen, err
}

// acceptedKey is the key of a message's session. An earlier delivery may have another sender id: its frame had the other
// id, or a staff id was learned in between, or became ambiguous. The key of that delivery then stays the message's.
func (b *Bot) acceptedKey(ctx context.Context, m sessions.Message, asSent sessions.Key, seen []sessions.UserID) (sessions.Key, error) {
	key := b.keyOf(m)
	if !b.hasMemberSession(m) {
		return key, nil
	}
	others := []sessions.Key{asSent}
	for _, id := range append(seen, m.EncryptedID) {
		if id != "" {
			others = append(others, sessions.NewKey(m.RobotCode, m.ConversationID, id))
		}
	}
	others = slices.DeleteFunc(others, func(k sessions.Key) bool { return k == key })
	if len(others) == 0 {
		return key, nil
	}
	earlier, err := b.store.AcceptedUnder(ctx, others, m.ID)
	if err != nil {
		return "", fmt.Errorf("look up earlier deliveries of message %s: %w", m.ID, err)
	}
	return cmp.Or(earlier, key), nil
}

func (b *Bot) hasMemberSession(m sessions.Message) bool { return b.scopeOf(m) == sessions.ScopeMember }

func (b *Bot) keyOf(m sessions.Message) sessions.Key { return b.scopeOf(m).Key(m) }

// scopeOf is the configured scope of a message's conversation. A private chat has one session.
func (b *Bot) scopeOf(m sessions.Message) sessions.Scope {
	if m.ConversationType == sessions.Private {
		return sessions.ScopeGroup
	}
	return cmp.Or(b.cfg.Groups[m.ConversationID].Scope, b.cfg.Scope)
}
