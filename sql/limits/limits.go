package limits

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// Store counts turns, tokens and notices.
type Store struct{ *pg.DB }

// New returns the counts of a database.
func New(db *pg.DB) *Store { return &Store{db} }

// The key of a window is a hash, so that it names no person.
func subject(kind string, robot sessions.RobotCode, id string) []byte {
	sum := sha256.Sum256([]byte(kind + "\x00" + string(robot) + "\x00" + id))
	return sum[:]
}

type windows struct {
	dbsqlc.LimitsAdmitParams
	reached map[string]sessions.Reached // by subject, without a time
}

func (w *windows) add(limit sessions.Limit, robot sessions.RobotCode, id string, bound, asker int, person sessions.UserID) {
	if bound <= 0 {
		return
	}
	key := subject(string(limit), robot, id)
	w.Subjects, w.Bounds, w.Askers = append(w.Subjects, key), append(w.Bounds, int64(bound)), append(w.Askers, asker)
	w.Turns = append(w.Turns, limit != sessions.PersonTokens)
	lasts := time.Minute
	if limit == sessions.UnidentifiedTurns {
		lasts = time.Hour
	}
	w.Lasts = append(w.Lasts, lasts.Seconds())
	w.reached[string(key)] = sessions.Reached{Limit: limit, Person: person}
}

// Admit implements sessions.Limiter. The tokens of the installation are read first: a turn that they stop counts
// nowhere.
func (s *Store) Admit(ctx context.Context, limits sessions.Limits, a sessions.Askers) ([]sessions.Reached, error) {
	w := windows{reached: map[string]sessions.Reached{}}
	w.People, w.SessionKey = len(a.People), a.Key
	if a.Group != "" {
		w.add(sessions.GroupTurns, a.Robot, string(a.Group), limits.GroupTurns, 0, "")
	}
	for i, person := range a.People {
		w.add(sessions.PersonTurns, a.Robot, string(person), limits.PersonTurns, i+1, person)
		w.add(sessions.PersonTokens, a.Robot, string(person), limits.PersonTokens, i+1, person)
		if slices.Contains(a.Unidentified, person) {
			w.add(sessions.UnidentifiedTurns, a.Robot, string(person), limits.UnidentifiedTurns, i+1, person)
		}
	}
	if limits.Tokens > 0 {
		p := &dbsqlc.LimitsAdmitDayParams{SessionKey: a.Key, Bound: int64(limits.Tokens)}
		if len(w.Subjects) == 0 { // no other limit decides
			for _, asked := range a.Asked {
				p.Events = append(p.Events, asked.Event)
			}
		}
		day, err := s.Q.LimitsAdmitDay(ctx, s.Pool, p)
		if err != nil {
			return nil, fmt.Errorf("reading the day's tokens: %w", err)
		}
		if day.Tokens >= int64(limits.Tokens) {
			return []sessions.Reached{{Limit: sessions.AllTokens, Until: day.EndsAt}}, nil
		}
	}
	if len(w.Subjects) == 0 {
		return nil, nil
	}
	for _, asked := range a.Asked {
		w.Events, w.EventAskers = append(w.Events, asked.Event), append(w.EventAskers, 1+slices.Index(a.People, asked.By))
	}
	if len(w.Subjects) > 1 {
		if err := s.Q.LimitsOpen(ctx, s.Pool, &dbsqlc.LimitsOpenParams{Subjects: w.Subjects, Turns: w.Turns}); err != nil {
			return nil, fmt.Errorf("opening the windows of %d askers: %w", len(a.People), err)
		}
	}
	rows, err := s.Q.LimitsAdmit(ctx, s.Pool, &w.LimitsAdmitParams)
	if err != nil {
		return nil, fmt.Errorf("counting a turn of %d askers: %w", len(a.People), err)
	}
	var reached []sessions.Reached
	for _, row := range rows {
		one := w.reached[string(row.Subject)]
		one.Until = row.EndsAt
		reached = append(reached, one)
	}
	return reached, nil
}

// SpendTokens implements sessions.Limiter.
func (s *Store) SpendTokens(ctx context.Context, robot sessions.RobotCode, people []sessions.UserID, tokens int) error {
	if len(people) == 0 || tokens <= 0 {
		return nil
	}
	p := &dbsqlc.LimitsSpendParams{}
	for i, part := range sessions.Shares(tokens, len(people)) {
		p.Subjects = append(p.Subjects, subject(string(sessions.PersonTokens), robot, string(people[i])))
		p.Tokens = append(p.Tokens, int64(part))
	}
	if err := s.Q.LimitsSpend(ctx, s.Pool, p); err != nil {
		return fmt.Errorf("counting the tokens of %d askers: %w", len(people), err)
	}
	return nil
}

// Notify implements sessions.Limiter.
func (s *Store) Notify(ctx context.Context, n sessions.Notice) (bool, error) {
	rows, err := s.Q.LimitsNotify(ctx, s.Pool, &dbsqlc.LimitsNotifyParams{
		Subject: subject("notice/"+n.Kind, n.Robot, n.Subject), EndsAt: pg.OrNil(n.Until), Lasts: n.Lasts.Seconds(), Noticed: pg.Clean(string(n.By)),
	})
	if err != nil {
		return false, fmt.Errorf("claiming a notice: %w", err)
	}
	return rows > 0, nil
}

// Used implements sessions.Limiter.
func (s *Store) Used(ctx context.Context, a sessions.Askers) (sessions.Used, error) {
	var u sessions.Used
	into := map[string]*sessions.Use{string(subject(string(sessions.GroupTurns), a.Robot, string(a.Group))): &u.GroupTurns}
	if len(a.People) > 0 {
		into[string(subject(string(sessions.PersonTurns), a.Robot, string(a.People[0])))] = &u.PersonTurns
		into[string(subject(string(sessions.PersonTokens), a.Robot, string(a.People[0])))] = &u.PersonTokens
		into[string(subject(string(sessions.UnidentifiedTurns), a.Robot, string(a.People[0])))] = &u.UnidentifiedTurns
	}
	var subjects [][]byte
	for key := range into {
		subjects = append(subjects, []byte(key))
	}
	rows, err := s.Q.LimitsUsed(ctx, s.Pool, subjects)
	if err != nil {
		return u, fmt.Errorf("reading the use of limits: %w", err)
	}
	for _, row := range rows {
		*into[string(row.Subject)] = sessions.Use{Count: int(row.Used), Until: row.EndsAt}
	}
	day, err := s.Q.SpendDay(ctx, s.Pool)
	if err != nil {
		return u, fmt.Errorf("reading the day's tokens: %w", err)
	}
	u.Tokens = sessions.Use{Count: int(day.Tokens), Until: day.EndsAt}
	return u, nil
}
