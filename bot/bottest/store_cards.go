package bottest

import (
	"context"
	"time"

	"ebb/sessions"
)

// OpenCard implements sessions.Stores.
func (s *Store) OpenCard(ctx context.Context, l sessions.Lease, c sessions.Card, hold time.Duration) (sessions.CardState, bool, error) {
	return s.Mem.Cards.OpenCard(ctx, l, c, hold)
}

// OpenCardOf implements sessions.Stores.
func (s *Store) OpenCardOf(ctx context.Context, k sessions.Key, tracks []string, events []int64) (sessions.Card, error) {
	return s.Mem.Cards.OpenCardOf(ctx, k, tracks, events)
}

// SettleCard implements sessions.Stores.
func (s *Store) SettleCard(ctx context.Context, k sessions.Key, track string, state sessions.CardState) error {
	return s.Mem.Cards.SettleCard(ctx, k, track, state)
}

// SetPrepaid implements sessions.Stores.
func (s *Store) SetPrepaid(ctx context.Context, c sessions.Card) error {
	return s.Mem.Cards.SetPrepaid(ctx, c)
}

// BeginFrame implements sessions.Stores.
func (s *Store) BeginFrame(ctx context.Context, l sessions.Lease, track, carrier string) error {
	return s.Mem.Cards.BeginFrame(ctx, l, track, carrier)
}

// EndFrame implements sessions.Stores.
func (s *Store) EndFrame(ctx context.Context, l sessions.Lease, track string) error {
	return s.Mem.Cards.EndFrame(ctx, l, track)
}

// LeaveCard implements sessions.Stores.
func (s *Store) LeaveCard(ctx context.Context, o sessions.Outgoing) error {
	return s.Mem.Cards.LeaveCard(ctx, o)
}

// AbandonedCards implements sessions.Stores.
func (s *Store) AbandonedCards(ctx context.Context, kind sessions.CardKind, retry time.Duration, limit int) ([]sessions.Card, error) {
	return s.Mem.Cards.AbandonedCards(ctx, kind, retry, limit)
}

// ClickedCard implements sessions.Stores.
func (s *Store) ClickedCard(ctx context.Context, track string, by sessions.UserID) (sessions.Clicked, error) {
	return s.Mem.Cards.ClickedCard(ctx, track, by)
}

// RateCard implements sessions.Stores.
func (s *Store) RateCard(ctx context.Context, k sessions.Key, track string, r sessions.Rating) (bool, error) {
	return s.Mem.Cards.RateCard(ctx, k, track, r)
}

// PostponeCard implements sessions.Stores.
func (s *Store) PostponeCard(ctx context.Context, c sessions.Card, pause time.Duration, made bool) error {
	return s.Mem.Cards.PostponeCard(ctx, c, pause, made)
}

// GivenUpCards implements sessions.Stores.
func (s *Store) GivenUpCards(ctx context.Context) (int, error) { return s.Mem.Cards.GivenUpCards(ctx) }
