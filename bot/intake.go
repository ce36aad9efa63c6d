package bot

import (
	"context"
	"fmt"

	"github.com/rs/zerolog"

	"ebb/sessions"
)

// accept is steps 1 and 2: it stores a message in the log, and returns nil only after the commit. Then it wakes the
// session: here if this replica holds the lease, otherwise by a notification. A message that access rules refuse is
// acknowledged and not stored.
func (b *Bot) accept(ctx context.Context, m sessions.Message) error {
	asSent := b.keyOf(m)
	m, err := b.identified(ctx, m)
	if err != nil {
		b.metrics.accepted.WithLabelValues("error").Inc()
		return fmt.Errorf("identify the sender of message %s: %w", m.ID, err)
	}
	if why := b.cfg.Access.Check(m); why != "" {
		b.refuse(ctx, m, why)
		return nil
	}
	key := b.keyOf(m)
	if key != asSent { // its first delivery may have come before the staff id was learned
		known, err := b.store.IsAccepted(ctx, asSent, m.ID)
		if err != nil {
			b.metrics.accepted.WithLabelValues("error").Inc()
			return fmt.Errorf("look up message %s of session %s: %w", m.ID, asSent, err)
		}
		if known {
			key = asSent
		}
	}
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

// identified fills in the staff id of an organization member from earlier frames that had both ids.
func (b *Bot) identified(ctx context.Context, m sessions.Message) (sessions.Message, error) {
	if m.StaffID != "" || m.EncryptedID == "" {
		return m, nil
	}
	staff, err := b.store.StaffOf(ctx, m.RobotCode, m.EncryptedID)
	if staff != "" {
		m.SenderID, m.StaffID = staff, staff
	}
	return m, err
}

func (b *Bot) keyOf(m sessions.Message) sessions.Key {
	var member sessions.UserID
	if b.cfg.PerMember && m.ConversationType != sessions.Private {
		member = m.SenderID
	}
	return sessions.NewKey(m.RobotCode, m.ConversationID, member)
}
