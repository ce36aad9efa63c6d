package limits_test

import (
	"bytes"
	"crypto/sha256"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/limits"
	"ebb/sql/pg"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// The tokens of the installation are left to those who used them on the days before, and not to people who are gone since. A person
// alone uses all, whatever the own days before and the upkeep took. A deletion of all about the person opens nothing.
func TestTokensAreLeftToRecentUsers(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "eve", false)
	limits := sessions.Limits{Tokens: 1000}
	wants := func(limit sessions.Limit, usage ...any) {
		t.Helper()
		storetest.Execute(t, pool, "DELETE FROM model_usage")
		storetest.Execute(t, pool, "DELETE FROM limit_windows")
		spent := 0
		for i := 0; i < len(usage); i += 3 {
			storetest.Execute(t, pool, `INSERT INTO model_usage (session_key, day, kind, person, prompt_tokens)
				VALUES ($1, (now() AT TIME ZONE 'UTC')::date - $2::int, 'turn', $3, $4)`, c.Reader.Key, usage[i], usage[i+1], usage[i+2])
			if usage[i] == 0 && usage[i+1] == "eve" {
				spent += usage[i+2].(int)
			}
		}
		if err := s.Limits.SpendTokens(t.Context(), storetest.Robot, map[sessions.UserID]int{"eve": spent}); err != nil {
			t.Fatal(err)
		}
		var met sessions.Limit
		if r := storetest.Must[[]sessions.Reached](t)(s.Limits.Admit(t.Context(), limits, sessions.Askers{Robot: storetest.Robot, People: []sessions.UserID{"eve"}})); len(r) > 0 {
			met = r[0].Limit
		}
		if met != limit {
			t.Errorf("with %v eve met %q, want %q", usage, met, limit)
		}
	}
	wants("", 0, "eve", 999)
	wants("", 0, "eve", 700, 1, "eve", 900, 0, "", 200, 1, "", 800)
	wants(sessions.TokensShare, 0, "eve", 600, 1, "alice", 300, 1, "bob", 100)
	wants("", 0, "eve", 599, 1, "alice", 300, 1, "bob", 100)
	wants(sessions.TokensShare, 0, "eve", 200, 5, "alice", 5000)
	wants("", 0, "eve", 199, 5, "alice", 5000)
	wants("", 0, "eve", 800, 9, "alice", 5000)
	wants(sessions.TokensShare, 0, "eve", 800, 0, "alice", 1)
}

// A window that runs at midnight goes on under the key of the day in which it began. So no limit is used twice, and each person of a
// group is known. The limits of a day begin again.
func TestWindowsOverMidnight(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	midnight := time.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
	_, pool := storetest.Open(t, url)
	before, after := storetest.OpenDB(t, pg.Options{URL: url, MaxConns: 4}), storetest.OpenDB(t, pg.Options{URL: url, MaxConns: 4})
	a := sessions.Askers{Robot: storetest.Robot, Group: "g", People: []sessions.UserID{"eve"}, Unidentified: []sessions.UserID{"eve"}, Work: sessions.Asking}
	met := func(db *pg.DB, most sessions.Limits, who sessions.UserID) sessions.Limit {
		t.Helper()
		a.People = []sessions.UserID{who}
		for _, r := range storetest.Must[[]sessions.Reached](t)(limits.New(db).Admit(t.Context(), most, a)) {
			return r.Limit
		}
		return ""
	}
	for limit, most := range map[sessions.Limit]sessions.Limits{
		sessions.PersonTurns: {PersonTurns: 2}, sessions.GroupTurns: {GroupTurns: 2}, sessions.UnidentifiedTurns: {UnidentifiedTurns: 2},
		sessions.GroupShare: {GroupTurns: 20}, "": {ScheduledTurns: 2},
	} {
		storetest.Execute(t, pool, "DELETE FROM limit_windows")
		before.Clock.Set(midnight.Add(-time.Minute), time.Now())
		if limit == sessions.GroupShare {
			met(before, most, "alice")
			for range 14 {
				met(before, most, "eve")
			}
		}
		for range 2 {
			if got := met(before, most, "eve"); got != "" {
				t.Errorf("%s: a turn before midnight met %s", limit, got)
			}
		}
		for _, db := range []*pg.DB{before, after} { // a process that runs on, and one that begins after midnight
			db.Clock.Set(midnight.Add(time.Second), time.Now())
			if got := met(db, most, "eve"); got != limit {
				t.Errorf("%s: a turn after midnight met %q", limit, got)
			}
		}
		if used := storetest.Must[sessions.Used](t)(limits.New(after).Used(t.Context(), a)); limit == sessions.PersonTurns && used.PersonTurns.Count != 2 {
			t.Errorf("%+v is used after midnight, want 2 turns", used)
		}
	}
}

// The hash of a window is one under the day's key: an id that is guessed names no row.
func TestWindowsNameNoPerson(t *testing.T) {
	t.Parallel()
	s, pool, _ := storetest.OpenChat(t)
	if err := s.Limits.SpendTokens(t.Context(), storetest.Robot, map[sessions.UserID]int{"alice": 10}); err != nil {
		t.Fatal(err)
	}
	guess := sha256.Sum256([]byte("person_tokens\x00" + string(storetest.Robot) + "\x00alice"))
	for _, subject := range storetest.Collect(t, pool, "SELECT subject FROM limit_windows", pgx.RowTo[[]byte]) {
		if bytes.Equal(subject, guess[:]) {
			t.Error("the window is found by the id alone")
		}
	}
	used := sessions.Askers{Robot: storetest.Robot, People: []sessions.UserID{"alice"}}
	if n := storetest.Must[sessions.Used](t)(s.Limits.Used(t.Context(), used)).PersonTokens.Count; n != 10 {
		t.Errorf("the person used %d tokens, want 10", n)
	}
	storetest.Execute(t, pool, "DELETE FROM limit_keys")
	other, _ := storetest.Open(t, pool.Config().ConnString())
	if n := storetest.Must[sessions.Used](t)(other.Limits.Used(t.Context(), used)).PersonTokens.Count; n != 0 {
		t.Errorf("%d tokens are found without the key", n)
	}
}
