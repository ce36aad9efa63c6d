package limits

import (
	"bytes"
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
type Store struct {
	*pg.DB
	day *day
}

// New returns the counts of a database.
func New(db *pg.DB) *Store { return &Store{db, newDay(db)} }

// The key of a window is a hash, so that it names no person.
func subject(kind string, robot sessions.RobotCode, id string) []byte {
	sum := sha256.Sum256([]byte(kind + "\x00" + string(robot) + "\x00" + id))
	return sum[:]
}

// window is what a turn counts in, or reads only: a window of tokens.
type window struct {
	subject []byte
	bound   int64
	turns   bool
	lasts   time.Duration
	reached sessions.Reached // without a time
}

// stops reports whether the window stops a person.
func (w window) stops(person sessions.UserID) bool {
	return w.reached.Person == "" || w.reached.Person == person
}

func windowsOf(limits sessions.Limits, a sessions.Askers) []window {
	var all []window
	add := func(limit sessions.Limit, id string, bound int, person sessions.UserID) {
		if bound <= 0 {
			return
		}
		w := window{
			subject: subject(string(limit), a.Robot, id), bound: int64(bound), turns: limit != sessions.PersonTokens, lasts: time.Minute,
			reached: sessions.Reached{Limit: limit, Person: person},
		}
		if limit == sessions.UnidentifiedTurns {
			w.lasts = time.Hour
		}
		all = append(all, w)
	}
	if a.Group != "" {
		add(sessions.GroupTurns, string(a.Group), limits.GroupTurns, "")
	}
	for _, person := range a.People {
		add(sessions.PersonTurns, string(person), limits.PersonTurns, person)
		add(sessions.PersonTokens, string(person), limits.PersonTokens, person)
		if slices.Contains(a.Unidentified, person) {
			add(sessions.UnidentifiedTurns, string(person), limits.UnidentifiedTurns, person)
		}
	}
	// Turns lock windows in one order.
	slices.SortFunc(all, func(x, y window) int { return bytes.Compare(x.subject, y.subject) })
	return all
}

// Admit implements sessions.Limiter. It reads first which limits are reached: a turn that they stop counts nowhere.
func (s *Store) Admit(ctx context.Context, limits sessions.Limits, a sessions.Askers) ([]sessions.Reached, error) {
	if limits.Tokens > 0 {
		day, err := s.day.use(ctx)
		if err != nil {
			return nil, err
		}
		if day.Count >= limits.Tokens {
			return []sessions.Reached{{Limit: sessions.AllTokens, Until: day.Until}}, nil
		}
	}
	all := windowsOf(limits, a)
	if len(all) == 0 && limits.Tokens <= 0 {
		return nil, nil
	}
	for tries := 1; ; tries++ {
		reached, err := s.reached(ctx, all)
		if err == nil {
			err = s.count(ctx, all, reached, a)
		}
		// Other turns filled a window since it was read.
		if pg.IsCode(err, pg.DivisionByZero) && tries < maxAdmissions {
			continue
		}
		if pg.IsCode(err, pg.DivisionByZero) {
			err = errContended
		}
		if err != nil {
			return nil, fmt.Errorf("counting a turn of %d askers: %w", len(a.People), err)
		}
		return reached, nil
	}
}

const maxAdmissions = 10

var errContended = fmt.Errorf("other turns filled a window before each of %d tries", maxAdmissions)

func (s *Store) reached(ctx context.Context, all []window) ([]sessions.Reached, error) {
	if len(all) == 0 {
		return nil, nil
	}
	subjects := make([][]byte, 0, len(all))
	for _, w := range all {
		subjects = append(subjects, w.subject)
	}
	rows, err := s.Q.LimitsUsed(ctx, s.Pool, subjects)
	if err != nil {
		return nil, err
	}
	var reached []sessions.Reached
	for _, row := range rows {
		for _, w := range all {
			if bytes.Equal(w.subject, row.Subject) && row.Used >= w.bound {
				w.reached.Until = row.EndsAt
				reached = append(reached, w.reached)
			}
		}
	}
	return reached, nil
}

// count counts the turn of the askers that no reached limit stops, and marks their messages.
func (s *Store) count(ctx context.Context, all []window, reached []sessions.Reached, a sessions.Askers) error {
	var events []int64
	admitted := slices.DeleteFunc(slices.Clone(a.People), func(person sessions.UserID) bool {
		return slices.ContainsFunc(reached, func(r sessions.Reached) bool { return window{reached: r}.stops(person) })
	})
	for _, asked := range a.Asked {
		if slices.Contains(admitted, asked.By) {
			events = append(events, asked.Event)
		}
	}
	p := s.Pool.Pipeline()
	for _, w := range all {
		if !w.turns || !slices.ContainsFunc(admitted, w.stops) {
			continue
		}
		s.Q.LimitsRenew(ctx, p, []*dbsqlc.LimitsRenewParams{{Subject: w.subject, Lasts: w.lasts.Seconds()}})
		s.Q.LimitsCount(ctx, p, []*dbsqlc.LimitsCountParams{{Subject: w.subject, Lasts: w.lasts.Seconds(), More: 1, Bound: w.bound}})
	}
	if len(events) > 0 {
		s.Q.LimitsAdmit(ctx, p, []*dbsqlc.LimitsAdmitParams{{SessionKey: a.Key, Events: events}})
	}
	return p.Send(ctx)
}

// SpendTokens implements sessions.Limiter.
func (s *Store) SpendTokens(ctx context.Context, robot sessions.RobotCode, people []sessions.UserID, tokens int) error {
	if len(people) == 0 || tokens <= 0 {
		return nil
	}
	var all []*dbsqlc.LimitsCountDayParams
	for i, part := range sessions.Shares(tokens, len(people)) {
		all = append(all, &dbsqlc.LimitsCountDayParams{
			Subject: subject(string(sessions.PersonTokens), robot, string(people[i])), More: int64(part),
		})
	}
	slices.SortFunc(all, func(x, y *dbsqlc.LimitsCountDayParams) int { return bytes.Compare(x.Subject, y.Subject) })
	p := s.Pool.Pipeline()
	for i, one := range all {
		s.Q.LimitsRenewDay(ctx, p, [][]byte{one.Subject})
		s.Q.LimitsCountDay(ctx, p, all[i:i+1])
	}
	if err := p.Send(ctx); err != nil {
		return fmt.Errorf("counting the tokens of %d askers: %w", len(people), err)
	}
	return nil
}

// Notify implements sessions.Limiter.
func (s *Store) Notify(ctx context.Context, n sessions.Notice) (bool, error) {
	key := subject("notice/"+n.Kind, n.Robot, n.Subject)
	claim := &dbsqlc.LimitsNotifyParams{Subject: key, EndsAt: pg.OrNil(n.Until), Noticed: pg.Clean(string(n.By))}
	if n.Until.IsZero() {
		claim.Lasts = n.Lasts.Seconds()
	}
	p := s.Pool.Pipeline()
	s.Q.LimitsOpen(ctx, p, [][]byte{key})
	claimed := s.Q.LimitsNotify(ctx, p, []*dbsqlc.LimitsNotifyParams{claim})
	if err := p.Send(ctx); err != nil {
		return false, fmt.Errorf("claiming a notice: %w", err)
	}
	rows, err := pg.Found(claimed.QueryRow)
	if err != nil || len(rows) == 0 || n.Group == "" {
		return len(rows) > 0, err
	}
	return s.countNotice(ctx, key, n)
}

// countNotice gives a claimed notice back that the group's minute has no room for.
func (s *Store) countNotice(ctx context.Context, claimed []byte, n sessions.Notice) (due bool, err error) {
	key := subject("notices", n.Robot, string(n.Group))
	p := s.Pool.Pipeline()
	s.Q.LimitsRenew(ctx, p, []*dbsqlc.LimitsRenewParams{{Subject: key, Lasts: time.Minute.Seconds()}})
	s.Q.LimitsCount(ctx, p, []*dbsqlc.LimitsCountParams{{Subject: key, Lasts: time.Minute.Seconds(), More: 1, Bound: sessions.NoticesPerMinute}})
	err = p.Send(ctx)
	if due = err == nil; pg.IsCode(err, pg.DivisionByZero) {
		err = s.Q.LimitsRelease(ctx, s.Pool, claimed)
	}
	if err != nil {
		return false, fmt.Errorf("counting a notice: %w", err)
	}
	return due, nil
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
	u.Tokens, err = s.day.use(ctx)
	return u, err
}
