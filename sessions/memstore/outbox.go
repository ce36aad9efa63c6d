package memstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"ebb/sessions"
)

// Unsent implements sessions.Outbox.
func (m Outbox) Unsent(ctx context.Context, l sessions.Lease) ([]sessions.Outgoing, error) {
	s, err := m.t.lockSession(ctx, l)
	if err != nil {
		return nil, err
	}
	defer m.t.mu.Unlock()
	now := time.Now()
	var unsent []sessions.Outgoing
	for _, o := range s.outbox {
		if o.settled {
			continue
		}
		due := o.sending || !o.NextAt.After(now)
		o.Took, o.Due = o.sender != l.Owner, due && !o.inFlight
		o.Maybe = o.Maybe || o.inFlight && o.Took && o.sender != ""
		o.sender, o.sending = l.Owner, due
		out := o.Outgoing
		out.Reply.Text, out.Attempts = "", 0
		if due {
			o.NextAt, out.NextAt = now.Add(handTime), time.Time{}
		}
		unsent = append(unsent, out)
	}
	return unsent, nil
}

// Announce implements sessions.Outbox.
func (m Outbox) Announce(ctx context.Context, l sessions.Lease, r sessions.Reply) ([]sessions.Outgoing, error) {
	s, err := m.t.lockSession(ctx, l)
	if err != nil {
		return nil, nil
	}
	defer m.t.mu.Unlock()
	if slices.ContainsFunc(s.outbox, func(o *outboxRow) bool { return o.Reply.Nonce == r.Nonce }) {
		return nil, nil
	}
	m.t.lastID++
	out := sessions.Outgoing{ID: m.t.lastID, Key: l.Key, Reply: r, Created: time.Now()}
	row := &outboxRow{Outgoing: out, sender: l.Owner, sending: true}
	row.NextAt = out.Created.Add(handTime)
	s.outbox = append(s.outbox, row)
	return []sessions.Outgoing{out}, nil
}

// Claim implements sessions.Outbox.
func (m Outbox) Claim(ctx context.Context, l sessions.Lease, t sessions.SendAttempt) ([]sessions.Outgoing, error) {
	s, err := m.t.lockSession(ctx, l)
	if err != nil {
		return nil, err
	}
	defer m.t.mu.Unlock()
	var claimed []sessions.Outgoing
	for _, o := range s.outbox {
		if o.settled || !slices.Contains(t.IDs, o.ID) {
			continue
		}
		o.Attempts++
		o.noteCarrier(t.Carrier)
		if o.Reply.Nonce == t.Nonce {
			o.Part = max(o.Part, t.Part)
		}
		o.Joint, o.sender, o.sending, o.inFlight, o.NextAt = t.Joint, l.Owner, true, true, time.Now().Add(handTime)
		out := o.Outgoing
		out.NextAt, out.Took, out.Due = time.Time{}, false, false
		claimed = append(claimed, out)
	}
	return claimed, nil
}

// PutDown implements sessions.Outbox.
func (m Outbox) PutDown(_ context.Context, owner sessions.ReplicaID) error {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	for _, s := range m.t.sessions {
		for _, o := range s.outbox {
			if o.sender == owner && !o.settled {
				if o.sending {
					o.NextAt = time.Now()
				}
				o.sender, o.sending, o.inFlight = "", false, false
			}
		}
	}
	return nil
}

// Settle implements sessions.Outbox.
func (m Outbox) Settle(_ context.Context, t sessions.SendOutcome) error {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	final := t.Sent || t.Failed
	if s, ok := m.t.sessions[t.Key]; ok {
		for _, o := range s.outbox {
			if o.ID != t.ID || !final && o.Attempts != t.Attempt {
				continue
			}
			if t.Card == "" {
				o.noteCarrier(t.Carrier)
			} else {
				id := cardID{t.Key, o.Reply.Target.Card}
				if c := m.t.cardRows[id]; c != nil {
					c.carrier = cmp.Or(t.Carrier, c.carrier)
				}
				m.t.settleCard(id, t.Card)
			}
			if final && !o.settled {
				o.settled, o.sent, o.ended = true, t.Sent, time.Now()
			}
			o.sending, o.inFlight, o.NextAt, o.Part, o.Maybe = false, false, t.NextAt, max(o.Part, t.Part), o.Maybe || t.Maybe
			o.Via = t.Via
			if !t.Maybe {
				o.Joint = ""
			}
			if t.Refused {
				o.Refusals++
			}
			return nil
		}
	}
	return fmt.Errorf("settling reply %d: %w", t.ID, sessions.ErrNotFound)
}

// Trim replaces the text of an unsent reply, as an erasure does.
func (m *Store) Trim(key sessions.Key, reply int64, text string) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	for _, o := range m.t.sessions[key].outbox {
		if o.ID == reply && !o.settled {
			o.Maybe = o.Maybe || o.inFlight || o.Part > 0
			o.Reply.Text, o.Part, o.Joint = text, 0, ""
			o.Reply.Nonce += "t"
			o.Attempts++
		}
	}
}
