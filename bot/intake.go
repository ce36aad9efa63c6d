package bot

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"ebb/bot/access"
	"ebb/bot/parts"
	"ebb/bot/reload"
	"ebb/bot/turn"
	"ebb/bot/view"
	"ebb/sessions"
)

// intake takes messages in: it stores each one, and wakes its session.
type intake struct {
	shared       *parts.Shared
	placing      *placing
	views        *view.Builder
	runner       *turn.Runner
	refuser      *refuser
	accepted     *prometheus.CounterVec // by outcome
	restarts     *restartStats
	organization atomic.Pointer[string] // that of the newest message with one; nil: no such message came yet
}

// accept is steps 1 and 2: it stores a message, and returns nil only after the commit. It then wakes the session
// here, if this replica holds the lease, or by a notification. A refused message is acknowledged and not stored.
func (i *intake) accept(ctx context.Context, m sessions.Message) error {
	sent := m.SenderID
	if m.Organization != "" {
		i.organization.Store(&m.Organization)
	}
	m, seen, err := i.placing.identified(ctx, m)
	if err != nil {
		i.accepted.WithLabelValues("error").Inc()
		return err
	}
	why, err := i.placing.refusal(ctx, m, seen)
	if err == nil && why != "" {
		err = i.placing.learnRefused(ctx, m)
	}
	if err != nil {
		i.accepted.WithLabelValues("error").Inc()
		return err
	}
	if why != "" {
		i.refuser.refuse(ctx, m, why)
		return nil
	}
	m.Text = i.views.Words.Quoted(m) + m.Text
	done, err := i.placing.place(ctx, m, append(seen, sent))
	return i.finish(ctx, m, done, err)
}

// placing finds the session of a message, and stores it there, unless access rules refuse its sender.
type placing struct {
	inbox interface {
		AcceptHere(ctx context.Context, owner sessions.ReplicaID, key sessions.Key, m sessions.Message, among []sessions.Key) (sessions.Accepted, error)
		LinkedIDs(ctx context.Context, robot sessions.RobotCode, id sessions.UserID) ([]sessions.UserID, error)
		LearnIDs(ctx context.Context, m sessions.Message) error
	}
	scopes interface {
		PlaceOf(ctx context.Context, m sessions.Message, among []sessions.Key) (sessions.Place, error)
	}
	replica sessions.ReplicaID
	current *reload.Current                              // access rules
	scope   func(sessions.ConversationID) sessions.Scope // configured scope of a group
	learnt  *lru.Cache[idPair, time.Time]                // ids of refused senders that are stored
}

func newPlacing(stores sessions.Stores, replica sessions.ReplicaID, current *reload.Current, scope func(sessions.ConversationID) sessions.Scope) *placing {
	learnt, _ := lru.New[idPair, time.Time](maxLearnt) // it fails only without a size
	return &placing{inbox: stores.Inbox, scopes: stores.Scopes, replica: replica, current: current, scope: scope, learnt: learnt}
}

// place stores a message in its session. Usually that is the one of all members, and one statement does it. An earlier delivery may have
// chosen another one. others are more ids of the sender: its frame had the other id, or a staff id was learned in between, or became
// ambiguous.
func (p *placing) place(ctx context.Context, m sessions.Message, others []sessions.UserID) (sessions.Accepted, error) {
	if m.ConversationType == sessions.Private {
		return p.acceptAt(ctx, sessions.ScopeGroup.Key(m), m)
	}
	group := sessions.ScopeGroup.Key(m)
	among := append([]sessions.Key{group}, memberKeys(m, append(others, m.SenderID, m.EncryptedID))...)
	if p.scope(m.ConversationID) == sessions.ScopeGroup {
		done, err := p.inbox.AcceptHere(ctx, p.replica, group, m, among)
		if err != nil {
			return done, fmt.Errorf("session %s: %w", group, err)
		}
		if !done.Elsewhere {
			return done, nil
		}
	}
	key, err := p.sessionOf(ctx, m, among)
	if err != nil {
		return sessions.Accepted{}, err
	}
	return p.acceptAt(ctx, key, m)
}

func (p *placing) acceptAt(ctx context.Context, key sessions.Key, m sessions.Message) (sessions.Accepted, error) {
	done, err := p.inbox.AcceptHere(ctx, p.replica, key, m, nil)
	if err != nil {
		return done, fmt.Errorf("session %s: %w", key, err)
	}
	return done, nil
}

// finish counts the outcome of a message, and wakes its session.
func (i *intake) finish(ctx context.Context, m sessions.Message, done sessions.Accepted, err error) error {
	if err != nil {
		i.accepted.WithLabelValues("error").Inc()
		return err
	}
	key := done.Lease.Key
	outcome := "duplicate"
	if done.New {
		outcome = "new"
		i.restarts.note(key, done.EventID)
	} else {
		i.restarts.redelivered.Add(1)
	}
	i.accepted.WithLabelValues(outcome).Inc()
	if done.Clash {
		zerolog.Ctx(ctx).Warn().EmbedObject(key).Str("msg_id", string(m.ID)).Msg("Sender id arrived with a second staff id")
	}
	zerolog.Ctx(ctx).Debug().EmbedObject(key).Str("msg_id", string(m.ID)).Str("outcome", outcome).Msg("Message accepted")
	i.wakeFor(done)
	return nil
}

// wakeFor notes the lease of an accepted message, and wakes its session if it is this replica's.
func (i *intake) wakeFor(a sessions.Accepted) {
	i.shared.Leases.Learn(a.Lease)
	if a.Lease.Owner != i.shared.Leases.Owner() {
		i.runner.Look(a.Lease.Key)
	}
	if a.New && a.Lease.Owner == i.shared.Leases.Owner() {
		i.runner.Wake(a.Lease.Key)
	}
}

// identified fills in the staff id of an organization member from earlier frames that had both ids. seen are the
// staff ids of these frames.
func (p *placing) identified(ctx context.Context, m sessions.Message) (_ sessions.Message, seen []sessions.UserID, err error) {
	if m.EncryptedID == "" || m.StaffID != "" {
		return m, nil, nil
	}
	seen, err = p.inbox.LinkedIDs(ctx, m.RobotCode, m.EncryptedID)
	if len(seen) == 1 {
		m.SenderID, m.StaffID = seen[0], seen[0]
	}
	return m, seen, err
}

// refusal checks the sender of a message by every id that is known. A frame with one id alone is compared by those that other frames had
// next to it: seen, or those that it looks up.
func (p *placing) refusal(ctx context.Context, m sessions.Message, seen []sessions.UserID) (access.Refusal, error) {
	rules := p.current.Get().ForRobot(m.RobotCode).Access
	why := rules.Check(m, seen...)
	if why != "" || !rules.Denies() || m.SenderID == "" || m.EncryptedID != "" {
		return why, nil
	}
	linked, err := p.inbox.LinkedIDs(ctx, m.RobotCode, m.SenderID)
	if err != nil {
		return "", err
	}
	return rules.Check(m, linked...), nil
}

// serves is [placing.refusal] for a message that repeats a stored sender. A robot that is not configured any more serves no one.
func (p *placing) serves(ctx context.Context, m sessions.Message) (bool, error) {
	if !p.current.Get().Serves(m.RobotCode) {
		return false, nil
	}
	m, seen, err := p.identified(ctx, m)
	if err != nil {
		return false, err
	}
	why, err := p.refusal(ctx, m, seen)
	return why == "", err
}

// sessionOf follows an earlier delivery. A new message follows those of its sender that still wait, so that a change of
// the scope keeps their order.
func (p *placing) sessionOf(ctx context.Context, m sessions.Message, among []sessions.Key) (sessions.Key, error) {
	place, err := p.scopes.PlaceOf(ctx, m, among)
	if err != nil {
		return "", err
	}
	scope := cmp.Or(place.Chosen, p.scope(m.ConversationID))
	if place.Earlier == "" && scope == sessions.ScopeMember && m.StaffID != "" && m.EncryptedID != "" {
		seen, err := p.inbox.LinkedIDs(ctx, m.RobotCode, m.EncryptedID)
		if err != nil {
			return "", err
		}
		more := slices.DeleteFunc(memberKeys(m, seen), func(k sessions.Key) bool { return slices.Contains(among, k) })
		if len(more) > 0 {
			again, err := p.scopes.PlaceOf(ctx, m, more)
			if err != nil {
				return "", err
			}
			place.Earlier = again.Earlier
		}
	}
	return cmp.Or(place.Earlier, place.Waiting, scope.Key(m)), nil
}

func memberKeys(m sessions.Message, ids []sessions.UserID) []sessions.Key {
	var keys []sessions.Key
	for _, id := range ids {
		if key := sessions.NewKey(m.RobotCode, m.ConversationID, id); id != "" && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// Ids of refused senders.
const (
	// learntFor is the time for which a replica only checks that they are stored, and maxLearnt bounds those that it remembers.
	learntFor = 10 * time.Minute
	maxLearnt = 10_000
)

type idPair struct {
	robot            sessions.RobotCode
	encrypted, staff sessions.UserID
}

// learnRefused stores both ids of a refused sender before the acknowledgement: the next frame may have one of them alone. Further frames
// of a flood cost the storage a read, since an erasure may have deleted the ids.
func (p *placing) learnRefused(ctx context.Context, m sessions.Message) error {
	if m.EncryptedID == "" || m.StaffID == "" {
		return nil
	}
	pair := idPair{m.RobotCode, m.EncryptedID, m.StaffID}
	if at, ok := p.learnt.Get(pair); ok && time.Since(at) < learntFor {
		if linked, err := p.inbox.LinkedIDs(ctx, m.RobotCode, m.EncryptedID); err != nil || slices.Contains(linked, m.StaffID) {
			return err
		}
	}
	if err := p.inbox.LearnIDs(ctx, m); err != nil {
		return err
	}
	p.learnt.Add(pair, time.Now())
	return nil
}
