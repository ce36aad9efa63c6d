package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"sync"
	"time"

	"ebb/memory/pages"
)

// Tokens are the configured ones. An empty one is never right.
type Tokens struct {
	admin, viewer string
	wrong         *throttle
}

// NewTokens returns them with the bound of wrong ones.
func NewTokens(admin, viewer string) *Tokens {
	return &Tokens{admin, viewer, newThrottle(wrongEvery, wrongAtOnce)}
}

// Configured reports whether there is one.
func (t *Tokens) Configured() bool { return t.admin != "" || t.viewer != "" }

// role compares both tokens, by their hashes, so that the time reveals nothing.
func (t *Tokens) role(token string) (pages.Login, bool) {
	isAdmin, isViewer := Equal(token, t.admin), Equal(token, t.viewer)
	switch {
	case isAdmin:
		return pages.Login{Role: pages.RoleAdmin, Actor: "admin.token"}, true
	case isViewer:
		return pages.Login{Role: pages.RoleViewer, Actor: "admin.viewer_token"}, true
	}
	return pages.Login{}, false
}

const wrongPause = time.Second

// Enter answers a wrong token with 401, and with 429 after a pause over the bound of its address. A right token always
// enters: behind a proxy all people share an address, and one of them would lock out the others. Guessing fails by the
// length of tokens, which the configuration checks.
func (t *Tokens) Enter(r *http.Request, token string) (pages.Login, int) {
	if login, ok := t.role(token); ok {
		return login, http.StatusOK
	}
	if t.wrong.allow(r) {
		return pages.Login{}, http.StatusUnauthorized
	}
	select {
	case <-time.After(wrongPause):
	case <-r.Context().Done():
	}
	return pages.Login{}, http.StatusTooManyRequests
}

// key depends on the configured tokens, so a changed one ends all logins.
func (t *Tokens) key(cookie string) []byte {
	return Hash(cookie + "\x00" + t.admin + "\x00" + t.viewer)
}

// Equal compares secrets by their hashes, so that the time reveals nothing. It is false for an empty one that is wanted.
func Equal(got, want string) bool {
	same := subtle.ConstantTimeCompare(Hash(got), Hash(want)) == 1
	return same && want != ""
}

// Hash is the form in which a secret is stored.
func Hash(token string) []byte {
	h := sha256.Sum256([]byte(token))
	return h[:]
}

// Code admits one administrator, where nothing else admits anyone. A nil one takes none. A request from the same machine is no
// proof: a proxy there passes on those of other machines.
type Code struct {
	show func(string)

	mu    sync.Mutex
	value string
}

// NewCode shows the first code.
func NewCode(show func(string)) *Code {
	c := &Code{show: show, value: rand.Text()}
	show(c.value)
	return c
}

// Take reports whether the code is right. A right one is over, and the next one is shown.
func (c *Code) Take(code string) bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !Equal(code, c.value) {
		return false
	}
	c.value = rand.Text()
	c.show(c.value)
	return true
}
