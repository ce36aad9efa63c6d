package bot

import (
	"context"
	"time"

	"ebb/sessions"
)

func (s *store) OpenCard(ctx context.Context, l sessions.Lease, c sessions.Card, hold time.Duration) (sessions.CardState, bool, error) {
	return s.mem.OpenCard(ctx, l, c, hold)
}

func (s *store) OpenCardOf(ctx context.Context, k sessions.Key, tracks []string, events []int64) (sessions.Card, error) {
	return s.mem.OpenCardOf(ctx, k, tracks, events)
}

func (s *store) SettleCard(ctx context.Context, k sessions.Key, track string, state sessions.CardState) error {
	return s.mem.SettleCard(ctx, k, track, state)
}

func (s *store) SetPrepaid(ctx context.Context, c sessions.Card) error {
	return s.mem.SetPrepaid(ctx, c)
}

func (s *store) BeginFrame(ctx context.Context, l sessions.Lease, track, carrier string) error {
	return s.mem.BeginFrame(ctx, l, track, carrier)
}

func (s *store) EndFrame(ctx context.Context, l sessions.Lease, track string) error {
	return s.mem.EndFrame(ctx, l, track)
}

func (s *store) LeaveCard(ctx context.Context, o sessions.Outgoing) error {
	return s.mem.LeaveCard(ctx, o)
}

func (s *store) AbandonedCards(ctx context.Context, kind sessions.CardKind, retry time.Duration, limit int) ([]sessions.Card, error) {
	return s.mem.AbandonedCards(ctx, kind, retry, limit)
}

func (s *store) ClickedCard(ctx context.Context, track string, by sessions.UserID) (sessions.Clicked, error) {
	return s.mem.ClickedCard(ctx, track, by)
}

func (s *store) RateCard(ctx context.Context, k sessions.Key, track string, r sessions.Rating) (bool, error) {
	return s.mem.RateCard(ctx, k, track, r)
}

func (s *store) PostponeCard(ctx context.Context, c sessions.Card, pause time.Duration, made bool) error {
	return s.mem.PostponeCard(ctx, c, pause, made)
}

func (s *store) GivenUpCards(ctx context.Context) (int, error) { return s.mem.GivenUpCards(ctx) }
