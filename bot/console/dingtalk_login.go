package console

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/time/rate"

	"ebb/bot/console/auth"
	"ebb/memory/pages"
	"ebb/sessions"
)

// CallbackPath is the path that DingTalk's page leads back to.
const CallbackPath = "/login/dingtalk/callback"

// stateCookie binds a login by DingTalk to the browser that began it.
const stateCookie = "ebb_login"

const (
	stateTTL = 10 * time.Minute
	maxNext  = 2000 // bytes of the path that it leads to

	identifyTime  = 20 * time.Second
	identifyEvery = rate.Limit(4) // per second
	identifyAt    = 20            // at once
	maxIdentify   = 8             // logins of one address that wait for an answer
)

// dingtalkLogin logs people in by DingTalk.
type dingtalkLogin struct {
	page     *loginPage
	identity pages.Identity
	states   states
	asked    *rate.Limiter // questions to DingTalk for a person
	asking   *shares       // those that wait
}

// states are those of logins that began.
type states interface {
	UseState(ctx context.Context, hash []byte, next string, ttl time.Duration) error
}

func newDingtalkLogin(page *loginPage, identity pages.Identity, used states) *dingtalkLogin {
	return &dingtalkLogin{page, identity, used, rate.NewLimiter(identifyEvery, identifyAt), &shares{most: maxIdentify, taken: map[string]int{}}}
}

// begin sends a state that this browser alone knows. The browser keeps it, with the path that the login leads to and a signature: a
// login that did not begin here asks DingTalk nothing. A begun login takes nothing of the server, so that no bound of an address is
// needed. All people behind a proxy would share it.
func (l *dingtalkLogin) begin(w http.ResponseWriter, r *http.Request) {
	next := localPath(r.FormValue("next"))
	if len(next) > maxNext {
		next = "/"
	}
	state := rand.Text()
	state = strconv.FormatInt(time.Now().Add(stateTTL).Unix(), 36) + "-" + state
	kept := state + "." + base64.RawURLEncoding.EncodeToString([]byte(next))
	http.SetCookie(w, l.stateCookie(r, kept+"."+l.identity.Sign(kept), stateTTL))
	http.Redirect(w, r, l.identity.Address(state), http.StatusSeeOther)
}

// stateCookie is lax: DingTalk's page leads back from another site, so a strict cookie would be missing.
func (l *dingtalkLogin) stateCookie(r *http.Request, state string, life time.Duration) *http.Cookie {
	cookie := auth.Cookie(r, stateCookie, state, life)
	cookie.SameSite, cookie.Path = http.SameSiteLaxMode, CallbackPath
	cookie.Secure = cookie.Secure || l.identity.Secure()
	return cookie
}

// end checks the state before anything is asked of DingTalk: a forged or repeated answer costs one statement. The state is used
// up even if the login fails later.
func (l *dingtalkLogin) end(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, l.stateCookie(r, "", -time.Second))
	state, next, ok := l.continued(r)
	if !ok {
		l.page.show(w, r, http.StatusBadRequest, "", "login.state")
		return
	}
	// One that was used, as in a replay, takes no place of its address and no question to DingTalk.
	switch err := l.states.UseState(r.Context(), auth.Hash(state), next, stateTTL); {
	case errors.Is(err, sessions.ErrNotFound):
		l.page.show(w, r, http.StatusBadRequest, "", "login.state")
		return
	case err != nil:
		l.refuse(w, r, next, err)
		return
	}
	entry := l.page.entry
	leave, ok := l.asking.enter(auth.Address(r))
	if !ok {
		l.page.show(w, r, http.StatusTooManyRequests, next, "login.too_often")
		return
	}
	defer leave()
	person, err := l.identify(r)
	if err != nil {
		l.refuse(w, r, next, err)
		return
	}
	login := pages.Login{Role: pages.RolePerson, Actor: string(person.ID), Nick: person.Nick}
	allowed, err := entry.logins.InForce(login)
	if err != nil {
		zerolog.Ctx(r.Context()).Info().Msg("Console login refused: the person administers nothing")
		l.page.show(w, r, http.StatusForbidden, next, "login.no_rights", login.Actor)
		return
	}
	if err := entry.logins.Keep(w, r, login, l.identity.Secure()); err != nil {
		entry.fail(w, r, entry.pages.Language(w, r), pages.Login{}, err)
		return
	}
	// A redirect would go on from the other site, without the strict cookie of the login. The page's own refresh
	// carries it.
	next = localPath(next)
	w.Header().Set("Refresh", "0; url="+next)
	entry.request(r, allowed, entry.pages.Language(w, r)).showAs(w, http.StatusOK, "entered", next)
}

// shares bounds the places of each address, so that one address leaves the others theirs.
type shares struct {
	most int

	mu    sync.Mutex
	taken map[string]int
}

// enter reports whether the address has a place left, which the caller gives back by leave.
func (s *shares) enter(address string) (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[address] >= s.most {
		return nil, false
	}
	s.taken[address]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.taken[address]--; s.taken[address] == 0 {
			delete(s.taken, address)
		}
	}, true
}

// continued returns the state and the path of a login that this browser began a while ago at most.
func (l *dingtalkLogin) continued(r *http.Request) (state, next string, ok bool) {
	cookie, err := r.Cookie(stateCookie)
	if err != nil {
		return "", "", false
	}
	signed := strings.LastIndexByte(cookie.Value, '.')
	if signed < 0 || !auth.Equal(cookie.Value[signed+1:], l.identity.Sign(cookie.Value[:signed])) {
		return "", "", false
	}
	state, encoded, _ := strings.Cut(cookie.Value[:signed], ".")
	if !auth.Equal(r.FormValue("state"), state) {
		return "", "", false
	}
	until, _, _ := strings.Cut(state, "-")
	seconds, err := strconv.ParseInt(until, 36, 64)
	path, wrong := base64.RawURLEncoding.DecodeString(encoded)
	return state, string(path), err == nil && wrong == nil && time.Until(time.Unix(seconds, 0)) > 0
}

// identify asks DingTalk for a person, at most a few at once and some in a second: forged codes must not use up the calls that answers need.
// A login waits for its turn.
func (l *dingtalkLogin) identify(r *http.Request) (pages.Person, error) {
	ctx, stop := context.WithTimeout(r.Context(), identifyTime)
	defer stop()
	if err := l.asked.Wait(ctx); err != nil {
		return pages.Person{}, fmt.Errorf("waiting to ask for a person: %w", err)
	}
	return l.identity.Identify(ctx, r.FormValue("authCode"))
}

func (l *dingtalkLogin) refuse(w http.ResponseWriter, r *http.Request, next string, err error) {
	status, wrong := http.StatusBadGateway, "login.failed"
	switch {
	case errors.Is(err, pages.ErrLoginCode):
		status, wrong = http.StatusUnauthorized, "login.code"
	case errors.Is(err, pages.ErrOutsider):
		status, wrong = http.StatusForbidden, "login.outsider"
	case errors.Is(err, pages.ErrLoginSetup):
		wrong = "login.setup"
	}
	zerolog.Ctx(r.Context()).Warn().Err(err).Msg("Console login by DingTalk failed")
	l.page.show(w, r, status, next, wrong)
}
