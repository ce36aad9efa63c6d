package bot

import (
	"context"

	"ebb/sessions"
)

func (s *store) Admit(ctx context.Context, limits sessions.Limits, a sessions.Askers) ([]sessions.Reached, error) {
	return do(s, "admit", func() ([]sessions.Reached, error) { return s.mem.Admit(ctx, limits, a) })
}

func (s *store) SpendTokens(ctx context.Context, robot sessions.RobotCode, spent map[sessions.UserID]int) error {
	_, err := do(s, "spend", func() (none, error) { return none{}, s.mem.SpendTokens(ctx, robot, spent) })
	return err
}

func (s *store) Notify(ctx context.Context, n sessions.Notice) (bool, error) {
	return do(s, "notify", func() (bool, error) { return s.mem.Notify(ctx, n) })
}

func (s *store) Used(ctx context.Context, a sessions.Askers) (sessions.Used, error) {
	return do(s, "used", func() (sessions.Used, error) { return s.mem.Used(ctx, a) })
}

func (s *store) OthersTokens(ctx context.Context, robot sessions.RobotCode, person sessions.UserID) (int, error) {
	return s.mem.OthersTokens(ctx, robot, person)
}

func (s *store) Withhold(ctx context.Context, l sessions.Lease, w sessions.Withholding) error {
	_, err := do(s, "withhold", func() (none, error) { return none{}, s.mem.Withhold(ctx, l, w) })
	return err
}

func (s *store) CountWithheld(ctx context.Context, key sessions.Key, model sessions.ModelID) (sessions.WithheldCount, error) {
	return do(s, "withheld", func() (sessions.WithheldCount, error) { return s.mem.CountWithheld(ctx, key, model) })
}
