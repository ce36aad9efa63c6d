package memstore

import (
	"context"
	"maps"
	"slices"
	"time"

	"ebb/sessions"
)

// window returns the zero value without a current window.
func (m Limits) window(kind string, robot sessions.RobotCode, id string) limitWindow {
	w := m.t.windows[limitSubject{kind, robot, id}]
	if !w.ends.After(time.Now()) {
		return limitWindow{}
	}
	return w
}

// use opens a window with the given end unless one is current.
func (m Limits) use(limit sessions.Limit, robot sessions.RobotCode, id string, n int, ends time.Time) {
	w := m.window(string(limit), robot, id)
	if w.ends.IsZero() {
		w = limitWindow{ends: ends}
		if last := m.t.windows[limitSubject{string(limit), robot, id}]; time.Since(last.ends) < sessions.RecentTurns {
			w.before = last.parts
		}
	}
	w.used += n
	m.t.windows[limitSubject{string(limit), robot, id}] = w
}

func (m Limits) useGroup(a sessions.Askers, people []sessions.UserID, ends time.Time) {
	m.use(sessions.GroupTurns, a.Robot, string(a.Group), 1, ends)
	of := limitSubject{string(sessions.GroupTurns), a.Robot, string(a.Group)}
	w := m.t.windows[of]
	w.parts = maps.Clone(w.parts)
	if w.parts == nil {
		w.parts = map[sessions.UserID]int{}
	}
	for _, p := range people {
		w.parts[p]++
	}
	m.t.windows[of] = w
}

// partsOf reads the turns of a person in a group's window, and the recent ones of the others.
func (w limitWindow) partsOf(person sessions.UserID) (used, others int) {
	for one := range w.parts {
		if one != person {
			others += max(w.parts[one], w.before[one])
		}
	}
	for one, n := range w.before {
		if _, again := w.parts[one]; one != person && !again {
			others += n
		}
	}
	return w.parts[person], others
}

// isBeyondGroup reports whether a person has used their part of a group's turns.
func (w limitWindow) isBeyondGroup(bound int, person sessions.UserID) bool {
	used, others := w.partsOf(person)
	return bound > 0 && used >= sessions.Allowance(bound, others)
}

func (m Limits) isBeyondTokens(a sessions.Askers, bound int, person sessions.UserID) bool {
	used := m.window(string(sessions.PersonTokens), a.Robot, string(person)).used
	return bound > 0 && used >= sessions.Allowance(bound, othersTokens(m, person))
}

// OthersTokens implements sessions.Limiter.
func (m Limits) OthersTokens(_ context.Context, _ sessions.RobotCode, person sessions.UserID) (int, error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	return othersTokens(m, person), nil
}

// othersTokens knows the use of this day alone.
func othersTokens(m Limits, person sessions.UserID) (others int) {
	for of := range m.t.windows {
		if of.kind == string(sessions.PersonTokens) && of.id != string(person) {
			others += m.window(of.kind, of.robot, of.id).used
		}
	}
	return others
}

func endOfDay() time.Time { return time.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour) }

// Admit implements sessions.Limiter.
func (m Limits) Admit(_ context.Context, limits sessions.Limits, a sessions.Askers) ([]sessions.Reached, error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	if limits.Tokens > 0 && m.tokensToday() >= limits.Tokens {
		return []sessions.Reached{{Limit: sessions.AllTokens, Until: endOfDay()}}, nil
	}
	keep := func(p sessions.UserID) {
		for _, asked := range a.Asked {
			s := m.t.sessions[a.Key]
			if asked.By != p || s == nil {
				continue
			}
			if e := s.findEvent(asked.Event); e != nil && e.State == sessions.Pending {
				mk := s.marks[e.ID]
				mk.admitted = true
				s.marks[e.ID] = mk
			}
		}
	}
	var reached []sessions.Reached
	stopped := map[sessions.UserID]bool{}
	check := func(limit sessions.Limit, id string, bound int, person sessions.UserID) {
		if w := m.window(string(limit), a.Robot, id); bound > 0 && w.used >= bound {
			reached, stopped[person] = append(reached, sessions.Reached{Limit: limit, Person: person, Until: w.ends}), true
		}
	}
	if a.Group != "" {
		check(sessions.GroupTurns, string(a.Group), limits.GroupTurns, "")
	}
	if a.Work == sessions.Compacting {
		check(sessions.Compactions, string(a.Key), limits.Compactions, "")
	}
	group := m.window(string(sessions.GroupTurns), a.Robot, string(a.Group))
	for _, p := range a.People {
		check(sessions.PersonTurns, string(p), limits.PersonTurns, p)
		check(sessions.PersonTokens, string(p), limits.PersonTokens, p)
		if a.Work == sessions.Asking {
			check(sessions.ScheduledTurns, string(p), limits.ScheduledTurns, p)
		}
		switch {
		case stopped[""] || stopped[p]:
		case a.Group != "" && group.isBeyondGroup(limits.GroupTurns, p):
			reached, stopped[p] = append(reached, sessions.Reached{Limit: sessions.GroupShare, Person: p, Until: group.ends}), true
		case m.isBeyondTokens(a, limits.Tokens, p):
			reached, stopped[p] = append(reached, sessions.Reached{Limit: sessions.TokensShare, Person: p, Until: endOfDay()}), true
		}
	}
	for _, p := range a.Unidentified {
		check(sessions.UnidentifiedTurns, string(p), limits.UnidentifiedTurns, p)
	}
	var admitted []sessions.UserID
	ends := time.Now().Add(time.Minute)
	for _, p := range a.People {
		if stopped[""] || stopped[p] {
			continue
		}
		admitted = append(admitted, p)
		keep(p)
		if limits.PersonTurns > 0 {
			m.use(sessions.PersonTurns, a.Robot, string(p), 1, ends)
		}
		if limits.UnidentifiedTurns > 0 && slices.Contains(a.Unidentified, p) {
			m.use(sessions.UnidentifiedTurns, a.Robot, string(p), 1, time.Now().Add(time.Hour))
		}
		if limits.ScheduledTurns > 0 && a.Work == sessions.Asking {
			m.use(sessions.ScheduledTurns, a.Robot, string(p), 1, endOfDay())
		}
	}
	if len(admitted) > 0 && a.Work == sessions.Compacting && limits.Compactions > 0 {
		m.use(sessions.Compactions, a.Robot, string(a.Key), 1, endOfDay())
	}
	if len(admitted) > 0 && a.Group != "" && limits.GroupTurns > 0 {
		m.useGroup(a, admitted, ends)
	}
	return reached, nil
}

func (m Limits) tokensToday() int {
	total := 0
	for _, s := range slices.Concat(slices.Collect(maps.Values(m.t.sessions)), slices.Collect(maps.Values(m.t.gone))) {
		if s.spentOn != currentDay() {
			continue
		}
		for _, one := range s.spent {
			total += one.Usage.Prompt + one.Usage.Completion
		}
	}
	return total
}

// SpendTokens implements sessions.Limiter.
func (m Limits) SpendTokens(_ context.Context, robot sessions.RobotCode, spent map[sessions.UserID]int) error {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	for person, tokens := range spent {
		m.use(sessions.PersonTokens, robot, string(person), tokens, endOfDay())
	}
	return nil
}

const notices = "notices"

// Notify implements sessions.Limiter.
func (m Limits) Notify(_ context.Context, n sessions.Notice) (bool, error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	kind := "notice/" + n.Kind
	if w := m.window(kind, n.Robot, n.Subject); !w.ends.IsZero() && (n.By == "" || w.noticed != n.By) {
		return false, nil
	}
	if n.Group != "" {
		if m.window(notices, n.Robot, string(n.Group)).used >= sessions.NoticesPerMinute {
			return false, nil
		}
		m.use(notices, n.Robot, string(n.Group), 1, time.Now().Add(time.Minute))
	}
	ends := n.Until
	if ends.IsZero() {
		ends = time.Now().Add(n.Lasts)
	}
	m.t.windows[limitSubject{kind, n.Robot, n.Subject}] = limitWindow{ends: ends, noticed: n.By}
	return true, nil
}

// Used implements sessions.Limiter.
func (m Limits) Used(_ context.Context, a sessions.Askers) (sessions.Used, error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	used := func(limit sessions.Limit, id string) sessions.LimitUse {
		w := m.window(string(limit), a.Robot, id)
		return sessions.LimitUse{Count: w.used, Until: w.ends}
	}
	u := sessions.Used{
		GroupTurns: used(sessions.GroupTurns, string(a.Group)), Compactions: used(sessions.Compactions, string(a.Key)),
		Tokens: sessions.LimitUse{Count: m.tokensToday(), Until: endOfDay()},
	}
	if len(a.People) > 0 {
		u.GroupPart.Until = u.GroupTurns.Until
		u.GroupPart.Count, u.GroupOthers = m.window(string(sessions.GroupTurns), a.Robot, string(a.Group)).partsOf(a.People[0])
		u.ScheduledTurns = used(sessions.ScheduledTurns, string(a.People[0]))
		u.PersonTurns = used(sessions.PersonTurns, string(a.People[0]))
		u.PersonTokens = used(sessions.PersonTokens, string(a.People[0]))
		u.UnidentifiedTurns = used(sessions.UnidentifiedTurns, string(a.People[0]))
	}
	return u, nil
}
