package approval

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/wording"
	"ebb/sessions"
	"ebb/sessions/periodic"
	"ebb/sessions/retry"
)

const (
	// checkInterval is the precision of the end of a wait.
	checkInterval = 2 * time.Second
	// countInterval is the age of the metric: on a cluster a count asks all nodes.
	countInterval = 10 * time.Second
	// page is the number of due calls that are read at a time.
	page = 100
	// expireTimeout bounds the wait for a session that is locked, as by an erasure.
	expireTimeout = 2 * time.Second
)

// Expiry ends waits for approval. Each replica has it, and only the leader ends any.
type Expiry struct {
	Desk      *Desk
	Replica   sessions.ReplicaID
	Leads     func(ctx context.Context) (bool, error)
	Languages wording.Languages
	// Accepted is called after the message of an expired call was stored.
	Accepted func(sessions.Accepted)
	Expired  func() // called for each wait that ended

	last    sessions.Approval // the next run goes on behind it
	waiting atomic.Int64
	counted time.Time // when waiting was read
}

// Waiting is the number of calls that wait, at most countInterval old.
func (x *Expiry) Waiting() int64 { return x.waiting.Load() }

// Task returns the background work.
func (x *Expiry) Task() periodic.Task {
	return periodic.Task{
		Interval: checkInterval, Timeout: time.Minute, Do: x.Run,
		Failure: "Failed to end waits for approval", Recovery: "Waits for approval end again",
		Pauses: retry.Pauses{First: checkInterval, Max: checkInterval},
	}
}

// Run ends the due waits of a page. The next run goes on behind it, and begins again behind the last page: waits that can't end hold up no
// other. Runs follow each other.
func (x *Expiry) Run(ctx context.Context) error {
	if time.Since(x.counted) >= countInterval {
		waiting, err := x.Desk.Store.CountApprovals(ctx)
		if err != nil {
			return err
		}
		x.waiting.Store(int64(waiting))
		x.counted = time.Now()
	}
	due, err := x.Desk.Store.DueApprovals(ctx, x.last, page)
	if err != nil || len(due) == 0 {
		x.last = sessions.Approval{}
		return err
	}
	if leads, err := x.Leads(ctx); err != nil || !leads {
		return err
	}
	var failed error
	for _, a := range due {
		x.last = a
		if err := x.expire(ctx, a); err != nil {
			failed = fmt.Errorf("session %s: %w", a.Key, err)
		}
	}
	if len(due) < page {
		x.last = sessions.Approval{}
	}
	return failed
}

// expire stores a message, whose turn has the words for people and for the model.
func (x *Expiry) expire(ctx context.Context, a sessions.Approval) error {
	ctx, stop := context.WithTimeout(ctx, expireTimeout)
	defer stop()
	accepted, err := x.Desk.Store.ExpireApproval(ctx, x.Replica, a, func(asked sessions.Message) sessions.Message { return x.message(a, asked) })
	switch {
	case errors.Is(err, sessions.ErrConflict), errors.Is(err, sessions.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	zerolog.Ctx(ctx).Info().EmbedObject(a.Key).Int64("approval", a.ID).Msg("Approval expired")
	x.Expired()
	if accepted.EventID != 0 {
		x.Accepted(accepted)
	}
	return nil
}

// message is of the asker, so that the reply mentions them. Its id is the same for each attempt, and another one for a call that has the number in a conversation that was deleted.
func (x *Expiry) message(a sessions.Approval, asked sessions.Message) sessions.Message {
	m := sessions.Message{
		RobotCode: asked.RobotCode, ConversationID: asked.ConversationID, ConversationType: asked.ConversationType, ConversationTitle: asked.ConversationTitle,
		Organization: asked.Organization, SenderID: asked.SenderID, StaffID: asked.StaffID, External: asked.External, SenderNick: asked.SenderNick,
		ID: sessions.MessageID(fmt.Sprintf("approval:%d:%d:expired", a.ID, a.ExpiresAt.UnixMicro())), Kind: "text",
		Webhook: a.Webhook, WebhookExpires: a.WebhookExpires,
	}
	m.Scheduled = &sessions.Scheduled{
		Kind: sessions.Expired, DueAt: a.ExpiresAt.In(x.Desk.Location), Number: a.ID, Call: a.Tool, Lang: x.Languages.OfText(m.ConversationID, asked.Text),
	}
	m.Text = m.Scheduled.Lead() + fmt.Sprintf("#%d %s", a.ID, a.Tool)
	return m
}
