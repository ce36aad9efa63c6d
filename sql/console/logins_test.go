package console_test

import (
	"errors"
	"testing"
	"time"

	"ebb/memory/pages"
	"ebb/sessions"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// A login is known at every replica until it ends: by its time, or by a logout.
func TestLoginsEnd(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	s, pool := storetest.Open(t, url)
	other, _ := storetest.Open(t, url)
	want := pages.Login{Role: pages.RolePerson, Actor: "staff1", Nick: "张"}
	for name, end := range map[string]func([]byte) error{
		"its time": func([]byte) error {
			_, err := pool.Exec(t.Context(), "UPDATE console_logins SET expires_at = now()")
			return err
		},
		"a logout": func(hash []byte) error { return other.Pages().Logout(t.Context(), hash) },
	} {
		hash := []byte("hash of " + name)
		if err := s.Pages().Login(t.Context(), hash, want, time.Hour); err != nil {
			t.Fatal(err)
		}
		if got, err := other.Pages().Authenticate(t.Context(), hash); err != nil || got.Role != want.Role || got.Actor != want.Actor || got.Nick != want.Nick {
			t.Errorf("before %s the login is %+v (%v)", name, got, err)
		}
		if err := end(hash); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Pages().Authenticate(t.Context(), hash); !errors.Is(err, sessions.ErrNotFound) {
			t.Errorf("after %s the login is %+v (%v)", name, got, err)
		}
	}
	if err := s.Pages().Logout(t.Context(), []byte("unknown")); err != nil {
		t.Errorf("a logout of no login: %v", err)
	}
}

// The state of a login at another site is used once, whichever replicas get its answers.
func TestStateOfALoginIsUsedOnce(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	s, _ := storetest.Open(t, url)
	other, _ := storetest.Open(t, url)
	if err := s.Pages().UseState(t.Context(), []byte("state"), "/sessions", time.Hour); err != nil {
		t.Errorf("the first use: %v", err)
	}
	if err := other.Pages().UseState(t.Context(), []byte("state"), "/audit", time.Hour); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("the second use: %v", err)
	}
	if err := other.Pages().UseState(t.Context(), []byte("another"), "/", time.Hour); err != nil {
		t.Errorf("another state: %v", err)
	}
}

// An action is in the audit before it runs, and has its outcome after it, which a reader with fewer sessions does not see.
func TestActionsAreRecordedFirst(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	a := pages.Action{Actor: "admin\x00", Action: "undo", Key: "robot/c", Detail: "3", Person: "u"}
	id := storetest.Must[int64](t)(s.Audit().Begin(t.Context(), a))
	seen := func(only []sessions.Key, want string) {
		t.Helper()
		rows, _, err := s.Pages().Actions(t.Context(), only, pages.Page{Limit: 10})
		switch {
		case err != nil:
			t.Fatal(err)
		case want == "none":
			if len(rows) != 0 {
				t.Errorf("a reader of %q sees %+v", only, rows)
			}
		case len(rows) != 1 || rows[0].ID != id || rows[0].Actor != "admin" || rows[0].Key != a.Key || rows[0].Person != a.Person || rows[0].Outcome != want || rows[0].At.IsZero():
			t.Errorf("the audit is %+v, want the outcome %q", rows, want)
		}
	}
	seen(nil, "")
	a.ID = id
	if err := s.Audit().End(t.Context(), a, "done"); err != nil {
		t.Fatal(err)
	}
	seen(nil, "done")
	seen([]sessions.Key{"robot/c"}, "done")
	seen([]sessions.Key{"robot/other"}, "none")
	seen([]sessions.Key{}, "none")
}
