package limits

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// Store counts turns, tokens and notices.
type Store struct {
	db     *pg.DB
	day    *day
	keys   *dayKeys
	others *others
}

// New returns the counts of a database.
func New(db *pg.DB) *Store { return &Store{db, newDay(db), &dayKeys{db: db}, newOthers(db)} }

// window is what a turn counts in, or reads only: a window of tokens.
type window struct {
	subject []byte
	earlier []byte // subject under the key of the day before, in which the window may have begun; nil if not
	key     dayKey // that of the subject
	bound   int64  // 0: the window is read for the share alone
	turns   bool
	lasts   time.Duration
	endsAt  *time.Time       // end of a day
	reached sessions.Reached // without a time
}

// stopsPerson reports whether the window stops a person.
func (w window) stopsPerson(person sessions.UserID) bool {
	return w.reached.Person == "" || w.reached.Person == person
}

// windows lists the counters that these askers touch, one for each limit in force. A person's tokens are counted for the shares of
// the installation even without a limit of their own.
func (k dayKey) windows(limits sessions.Limits, a sessions.Askers) []window {
	var all []window
	add := func(limit sessions.Limit, id string, bound int, person sessions.UserID) {
		if bound <= 0 && (limit != sessions.PersonTokens || limits.Tokens <= 0) {
			return
		}
		w := window{
			subject: k.subject(string(limit), a.Robot, id), key: k, bound: int64(max(bound, 0)), turns: limit != sessions.PersonTokens, lasts: time.Minute,
			reached: sessions.Reached{Limit: limit, Person: person},
		}
		switch limit {
		case sessions.UnidentifiedTurns:
			w.lasts = time.Hour
		case sessions.PersonTokens, sessions.ScheduledTurns, sessions.Compactions:
			w.lasts, w.endsAt = 0, &k.ends
		}
		if before, ok := k.yesterday(w.lasts); ok {
			w.earlier = before.subject(string(limit), a.Robot, id)
		}
		all = append(all, w)
	}
	if a.Group != "" {
		add(sessions.GroupTurns, string(a.Group), limits.GroupTurns, "")
	}
	if a.Work == sessions.Compacting {
		add(sessions.Compactions, string(a.Key), limits.Compactions, "")
	}
	for _, person := range a.People {
		add(sessions.PersonTurns, string(person), limits.PersonTurns, person)
		add(sessions.PersonTokens, string(person), limits.PersonTokens, person)
		if slices.Contains(a.Unidentified, person) {
			add(sessions.UnidentifiedTurns, string(person), limits.UnidentifiedTurns, person)
		}
		if a.Work == sessions.Asking {
			add(sessions.ScheduledTurns, string(person), limits.ScheduledTurns, person)
		}
	}
	return all
}

// Admit implements sessions.Limiter. It reads first which limits are reached: a turn that they stop counts nowhere.
func (s *Store) Admit(ctx context.Context, limits sessions.Limits, a sessions.Askers) ([]sessions.Reached, error) {
	if limits.Tokens > 0 {
		day, err := s.day.usedTokens(ctx)
		if err != nil {
			return nil, err
		}
		if day.Count >= limits.Tokens {
			return []sessions.Reached{{Limit: sessions.AllTokens, Until: day.Until}}, nil
		}
	}
	if len((dayKey{}).windows(limits, a)) == 0 {
		return nil, nil
	}
	k, err := s.keys.today(ctx)
	if err != nil {
		return nil, err
	}
	for tries := 1; ; tries++ {
		all := k.windows(limits, a)
		reached, err := s.reachedLimits(ctx, k, all, limits, a)
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

// readUsage reads the running windows by their subjects. A window that began on the day before keeps that day's subject until its end.
func (s *Store) readUsage(ctx context.Context, all []window) (map[string]dbsqlc.LimitsUsedRow, error) {
	subjects := make([][]byte, 0, len(all))
	for _, w := range all {
		subjects = append(subjects, w.subject)
		if w.earlier != nil {
			subjects = append(subjects, w.earlier)
		}
	}
	rows, err := s.db.Q.LimitsUsed(ctx, s.db.Pool, subjects)
	if err != nil {
		return nil, err
	}
	running := map[string]dbsqlc.LimitsUsedRow{}
	for _, row := range rows {
		if row.Running {
			running[string(row.Subject)] = row
		}
	}
	for i, w := range all {
		if _, ok := running[string(w.earlier)]; ok {
			all[i].subject = w.earlier
			all[i].key, _ = w.key.yesterday(w.lasts)
		}
	}
	return running, nil
}

// reachedLimits compares the counters with their limits. The share of a person depends on others, so it is computed only where it can
// matter.
func (s *Store) reachedLimits(ctx context.Context, k dayKey, all []window, limits sessions.Limits, a sessions.Askers) ([]sessions.Reached, error) {
	rows, err := s.readUsage(ctx, all)
	if err != nil {
		return nil, err
	}
	var reached []sessions.Reached
	for _, w := range all {
		row, running := rows[string(w.subject)]
		w.reached.Until = row.EndsAt
		switch {
		case !running:
		case w.bound > 0 && row.Used >= w.bound:
			reached = append(reached, w.reached)
		case w.reached.Limit == sessions.GroupTurns:
			over, err := beyondGroup(row, a, w)
			if err != nil {
				return nil, err
			}
			reached = append(reached, over...)
		case w.reached.Limit == sessions.PersonTokens && limits.Tokens > 0 && int(row.Used) >= sessions.Allowance(limits.Tokens, limits.Tokens):
			others, err := s.others.largestUse(ctx, w.reached.Person, k.day)
			if err != nil {
				return nil, err
			}
			if w.reached.Limit = sessions.TokensShare; int(row.Used) >= sessions.Allowance(limits.Tokens, others) {
				reached = append(reached, w.reached)
			}
		}
	}
	return reached, nil
}

// count counts the turn of the askers that no reached limit stops, and marks their messages. Turns lock windows in one order.
func (s *Store) count(ctx context.Context, all []window, reached []sessions.Reached, a sessions.Askers) error {
	var events []int64
	admitted := slices.DeleteFunc(slices.Clone(a.People), func(person sessions.UserID) bool {
		return slices.ContainsFunc(reached, func(r sessions.Reached) bool { return window{reached: r}.stopsPerson(person) })
	})
	for _, asked := range a.Asked {
		if slices.Contains(admitted, asked.By) {
			events = append(events, asked.Event)
		}
	}
	slices.SortFunc(all, func(x, y window) int { return bytes.Compare(x.subject, y.subject) })
	p, recent := s.db.Pool.Pipeline(), s.db.Clock.Now().Add(-sessions.RecentTurns)
	for _, w := range all {
		if !w.turns || !slices.ContainsFunc(admitted, w.stopsPerson) {
			continue
		}
		s.db.Q.LimitsRenew(ctx, p, []*dbsqlc.LimitsRenewParams{{Subject: w.subject, Lasts: w.lasts.Seconds(), EndsAt: w.endsAt, Recent: recent}})
		s.db.Q.LimitsCount(ctx, p, []*dbsqlc.LimitsCountParams{{Subject: w.subject, Lasts: w.lasts.Seconds(), EndsAt: w.endsAt, More: 1, Bound: w.bound}})
		if w.reached.Limit != sessions.GroupTurns {
			continue
		}
		for _, person := range admitted {
			s.db.Q.LimitsPart(ctx, p, []*dbsqlc.LimitsPartParams{{Subject: w.subject, Person: w.key.shareSubject(a.Robot, person)}})
		}
	}
	if len(events) > 0 {
		s.db.Q.LimitsAdmit(ctx, p, []*dbsqlc.LimitsAdmitParams{{SessionKey: a.Key, Events: events}})
	}
	return p.Send(ctx)
}

// SpendTokens implements sessions.Limiter.
func (s *Store) SpendTokens(ctx context.Context, robot sessions.RobotCode, spent map[sessions.UserID]int) error {
	if len(spent) == 0 {
		return nil
	}
	k, err := s.keys.today(ctx)
	if err != nil {
		return err
	}
	var all []*dbsqlc.LimitsCountParams
	for person, tokens := range spent {
		all = append(all, &dbsqlc.LimitsCountParams{
			Subject: k.subject(string(sessions.PersonTokens), robot, string(person)), EndsAt: &k.ends, More: int64(tokens), Bound: math.MaxInt64,
		})
	}
	slices.SortFunc(all, func(x, y *dbsqlc.LimitsCountParams) int { return bytes.Compare(x.Subject, y.Subject) })
	p := s.db.Pool.Pipeline()
	s.db.Q.LimitsCount(ctx, p, all) // the key of another day has other windows
	if err := p.Send(ctx); err != nil {
		return fmt.Errorf("counting the tokens of %d askers: %w", len(spent), err)
	}
	return nil
}

// Notify implements sessions.Limiter.
func (s *Store) Notify(ctx context.Context, n sessions.Notice) (bool, error) {
	k, err := s.keys.today(ctx)
	if err != nil {
		return false, err
	}
	key := k.subject("notice/"+n.Kind, n.Robot, n.Subject)
	claim := &dbsqlc.LimitsNotifyParams{Subject: key, EndsAt: pg.OrNil(n.Until), Noticed: pg.Clean(string(n.By))}
	if n.Until.IsZero() {
		claim.Lasts = n.Lasts.Seconds()
	}
	p := s.db.Pool.Pipeline()
	s.db.Q.LimitsOpen(ctx, p, [][]byte{key})
	claimed := s.db.Q.LimitsNotify(ctx, p, []*dbsqlc.LimitsNotifyParams{claim})
	if err := p.Send(ctx); err != nil {
		return false, fmt.Errorf("claiming a notice: %w", err)
	}
	rows, err := pg.Found(claimed.QueryRow)
	if err != nil || len(rows) == 0 || n.Group == "" {
		return len(rows) > 0, err
	}
	return s.countNotice(ctx, k, key, n)
}

// countNotice gives a claimed notice back that the group's minute has no room for.
func (s *Store) countNotice(ctx context.Context, k dayKey, claimed []byte, n sessions.Notice) (due bool, err error) {
	key := k.subject("notices", n.Robot, string(n.Group))
	p := s.db.Pool.Pipeline()
	s.db.Q.LimitsRenew(ctx, p, []*dbsqlc.LimitsRenewParams{{Subject: key, Lasts: time.Minute.Seconds(), Recent: s.db.Clock.Now()}})
	s.db.Q.LimitsCount(ctx, p, []*dbsqlc.LimitsCountParams{{Subject: key, Lasts: time.Minute.Seconds(), More: 1, Bound: sessions.NoticesPerMinute}})
	err = p.Send(ctx)
	if due = err == nil; pg.IsCode(err, pg.DivisionByZero) {
		err = s.db.Q.LimitsRelease(ctx, s.db.Pool, claimed)
	}
	if err != nil {
		return false, fmt.Errorf("counting a notice: %w", err)
	}
	return due, nil
}

// Used implements sessions.Limiter.
func (s *Store) Used(ctx context.Context, a sessions.Askers) (sessions.Used, error) {
	var u sessions.Used
	k, err := s.keys.today(ctx)
	if err != nil {
		return u, err
	}
	a.Unidentified, a.People, a.Work = nil, a.People[:min(1, len(a.People))], sessions.Asking
	if a.Group != "" {
		a.Unidentified = a.People
	}
	all := k.windows(sessions.Limits{PersonTurns: 1, GroupTurns: 1, PersonTokens: 1, UnidentifiedTurns: 1, ScheduledTurns: 1}, a)
	all = append(all, k.windows(sessions.Limits{Compactions: 1}, sessions.Askers{Robot: a.Robot, Key: a.Key, Work: sessions.Compacting})...)
	rows, err := s.readUsage(ctx, all)
	if err != nil {
		return u, fmt.Errorf("reading the use of limits: %w", err)
	}
	into := map[sessions.Limit]*sessions.LimitUse{
		sessions.GroupTurns: &u.GroupTurns, sessions.PersonTurns: &u.PersonTurns, sessions.PersonTokens: &u.PersonTokens,
		sessions.UnidentifiedTurns: &u.UnidentifiedTurns, sessions.ScheduledTurns: &u.ScheduledTurns, sessions.Compactions: &u.Compactions,
	}
	for _, w := range all {
		row, ok := rows[string(w.subject)]
		if !ok {
			continue
		}
		*into[w.reached.Limit] = sessions.LimitUse{Count: int(row.Used), Until: row.EndsAt}
		if w.reached.Limit == sessions.GroupTurns && len(a.People) > 0 {
			u.GroupPart.Until = row.EndsAt
			u.GroupPart.Count, u.GroupOthers, err = partsOf(row, w.key.shareSubject(a.Robot, a.People[0]))
			if err != nil {
				return u, err
			}
		}
	}
	u.Tokens, err = s.day.usedTokens(ctx)
	return u, err
}

// OthersTokens implements sessions.Limiter.
func (s *Store) OthersTokens(ctx context.Context, _ sessions.RobotCode, person sessions.UserID) (int, error) {
	return s.others.largestUse(ctx, person, s.db.Clock.Now().UTC().Truncate(24*time.Hour))
}
