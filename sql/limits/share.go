package limits

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// beyondGroup lists the people of a turn who have used their part of a group's turns.
func beyondGroup(row dbsqlc.LimitsUsedRow, a sessions.Askers, w window) ([]sessions.Reached, error) {
	var over []sessions.Reached
	for _, person := range a.People {
		own, others, err := partsOf(row, w.key.shareSubject(a.Robot, person))
		if err != nil {
			return nil, err
		}
		if own >= sessions.Allowance(int(w.bound), others) {
			over = append(over, sessions.Reached{Limit: sessions.GroupShare, Person: person, Until: row.EndsAt})
		}
	}
	return over, nil
}

// partsOf reads the turns of a person in a group's window, and the recent ones of the others.
func partsOf(row dbsqlc.LimitsUsedRow, own string) (used, others int, err error) {
	var parts, before map[string]int
	for text, into := range map[*[]byte]*map[string]int{&row.Parts: &parts, &row.Before: &before} {
		if err := json.Unmarshal(*text, into); err != nil {
			return 0, 0, fmt.Errorf("reading the parts of a group's turns: %w", err)
		}
	}
	for one, n := range parts {
		if one != own {
			others += max(n, before[one])
		}
	}
	for one, n := range before {
		if _, again := parts[one]; one != own && !again {
			others += n
		}
	}
	return parts[own], others, nil
}

// othersAge is how long a long sum of other people's tokens is kept. A person beyond a fifth reads one, so there are few.
const othersAge = time.Minute

// others are the latest sums of other people's tokens.
type others struct {
	db *pg.DB

	mu   sync.Mutex
	sums []othersSum
}

type othersSum struct {
	person sessions.UserID
	tokens int
	read   time.Time
}

const maxOthers = 16

func newOthers(db *pg.DB) *others { return &others{db: db} }

// largestUse reports the most tokens of other people on one of the recent days.
func (o *others) largestUse(ctx context.Context, person sessions.UserID, day time.Time) (int, error) {
	o.mu.Lock()
	o.sums = slices.DeleteFunc(o.sums, func(s othersSum) bool { return time.Since(s.read) > othersAge })
	i := slices.IndexFunc(o.sums, func(s othersSum) bool { return s.person == person })
	if i >= 0 {
		defer o.mu.Unlock()
		return o.sums[i].tokens, nil
	}
	o.mu.Unlock()
	since := pgtype.Date{Time: day.AddDate(0, 0, 1-sessions.RecentDays), Valid: true}
	row, err := o.db.Q.UsageOfOthers(ctx, o.db.Pool, &dbsqlc.UsageOfOthersParams{Since: since, Person: string(person)})
	if err != nil {
		return 0, fmt.Errorf("reading the tokens of other people: %w", err)
	}
	if row.OfRows > freshRows {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.sums = append(o.sums[max(0, len(o.sums)+1-maxOthers):], othersSum{person, int(row.Tokens), time.Now()})
	}
	return int(row.Tokens), nil
}
