package bottest

import (
	"context"

	"ebb/sessions"
)

// Admit implements sessions.Stores.
func (s *Store) Admit(ctx context.Context, limits sessions.Limits, a sessions.Askers) ([]sessions.Reached, error) {
	return do(s, "admit", func() ([]sessions.Reached, error) { return s.Mem.Limits.Admit(ctx, limits, a) })
}

// SpendTokens implements sessions.Stores.
func (s *Store) SpendTokens(ctx context.Context, robot sessions.RobotCode, spent map[sessions.UserID]int) error {
	_, err := do(s, "spend", func() (none, error) { return none{}, s.Mem.Limits.SpendTokens(ctx, robot, spent) })
	return err
}

// Notify implements sessions.Stores.
func (s *Store) Notify(ctx context.Context, n sessions.Notice) (bool, error) {
	return do(s, "notify", func() (bool, error) { return s.Mem.Limits.Notify(ctx, n) })
}

// Used implements sessions.Stores.
func (s *Store) Used(ctx context.Context, a sessions.Askers) (sessions.Used, error) {
	return do(s, "used", func() (sessions.Used, error) { return s.Mem.Limits.Used(ctx, a) })
}

// OthersTokens implements sessions.Stores.
func (s *Store) OthersTokens(ctx context.Context, robot sessions.RobotCode, person sessions.UserID) (int, error) {
	return s.Mem.Limits.OthersTokens(ctx, robot, person)
}

// Withhold implements sessions.Stores.
func (s *Store) Withhold(ctx context.Context, l sessions.Lease, w sessions.Withholding) error {
	_, err := do(s, "withhold", func() (none, error) { return none{}, s.Mem.Withheld.Withhold(ctx, l, w) })
	return err
}

// CountWithheld implements sessions.Stores.
func (s *Store) CountWithheld(ctx context.Context, key sessions.Key, model sessions.ModelID) (sessions.WithheldCount, error) {
	return do(s, "withheld", func() (sessions.WithheldCount, error) { return s.Mem.Withheld.CountWithheld(ctx, key, model) })
}
