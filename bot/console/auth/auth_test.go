package auth

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"ebb/memory/pages"
	"ebb/sessions"
)

// from is a request of an address, whose peer does not wait for the pause after wrong tokens.
func from(t *testing.T, address string) *http.Request {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/login", nil)
	r.RemoteAddr = address + ":1234"
	return r
}

// Each token has its role, and an empty one none. The bound of wrong ones is that of an address, and stops no right one.
func TestTokens(t *testing.T) {
	t.Parallel()
	tokens := NewTokens("admin-token", "")
	for i := range wrongAtOnce {
		if _, status := tokens.Enter(from(t, "10.0.0.1"), ""); status != http.StatusUnauthorized {
			t.Fatalf("wrong token %d is %d", i, status)
		}
	}
	if _, status := tokens.Enter(from(t, "10.0.0.1"), "admin"); status != http.StatusTooManyRequests {
		t.Errorf("one wrong token too many is %d", status)
	}
	if _, status := tokens.Enter(from(t, "10.0.0.2"), "admin"); status != http.StatusUnauthorized {
		t.Errorf("a wrong token of another address is %d", status)
	}
	if login, status := tokens.Enter(from(t, "10.0.0.1"), "admin-token"); status != http.StatusOK || login.Role != pages.RoleAdmin {
		t.Errorf("the right token is %d, %+v", status, login)
	}
	if login, _ := NewTokens("admin-token", "viewer-token").Enter(from(t, "10.0.0.1"), "viewer-token"); login.Role != pages.RoleViewer {
		t.Errorf("the viewer's token is %+v", login)
	}
}

// A code admits once, and a wrong one uses up none.
func TestCode(t *testing.T) {
	t.Parallel()
	var shown []string
	c := NewCode(func(code string) { shown = append(shown, code) })
	first := shown[0]
	if c.Take("") || c.Take(first+"x") || !c.Take(first) || c.Take(first) || len(shown) != 2 || !c.Take(shown[1]) {
		t.Errorf("shown %q", shown)
	}
	if none := (*Code)(nil); none.Take("") {
		t.Error("no code took one")
	}
}

// kept are the logins of a test, by their keys.
type kept map[string]pages.Login

// Login implements logins.
func (k kept) Login(_ context.Context, hash []byte, l pages.Login, _ time.Duration) error {
	k[string(hash)] = l
	return nil
}

// Authenticate implements logins.
func (k kept) Authenticate(_ context.Context, hash []byte) (pages.Login, error) {
	if l, ok := k[string(hash)]; ok {
		return l, nil
	}
	return pages.Login{}, sessions.ErrNotFound
}

// Logout implements logins.
func (k kept) Logout(_ context.Context, hash []byte) error {
	delete(k, string(hash))
	return nil
}

// A login has the rights that its person has at each request. It ends with them, with a changed token, and by a logout.
func TestLogins(t *testing.T) {
	t.Parallel()
	store, rights := kept{}, Rights{Admin: true}
	logins := NewLogins(store, NewTokens("one", ""), func(sessions.UserID) Rights { return rights })
	w, r := httptest.NewRecorder(), from(t, "10.0.0.1")
	if err := logins.Keep(w, r, pages.Login{Role: pages.RolePerson, Actor: "boss"}, true); err != nil {
		t.Fatal(err)
	}
	cookie := w.Result().Cookies()[0]
	if r.AddCookie(cookie); !cookie.Secure || !cookie.HttpOnly {
		t.Errorf("the cookie is %v", cookie)
	}
	if l, err := logins.Authenticate(r); err != nil || l.Role != pages.RoleAdmin {
		t.Errorf("an administrator is %+v, %v", l, err)
	}
	rights = Rights{Groups: []sessions.ConversationID{"cid"}}
	if l, err := logins.Authenticate(r); err != nil || l.Role != pages.RoleGroupAdmin || len(l.Groups) != 1 {
		t.Errorf("a group's administrator is %+v, %v", l, err)
	}
	for name, changed := range map[string]*Logins{"without rights": NewLogins(store, NewTokens("one", ""), NoRights), "with another token": NewLogins(store, NewTokens("two", ""), logins.rights)} {
		if _, err := changed.Authenticate(r); !errors.Is(err, sessions.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := logins.End(httptest.NewRecorder(), r); err != nil {
		t.Fatal(err)
	}
	if _, err := logins.Authenticate(r); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("after the logout: %v", err)
	}
}
