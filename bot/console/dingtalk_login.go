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

// inForce returns a login with the rights that its person has now. One without rights is no login.
func (e *entry) inForce(login pages.Login) (pages.Login, error) {
	if login.Role != pages.RolePerson {
		return login, nil
	}
	switch rights := e.cfg.Rights(sessions.UserID(login.Actor)); {
	case rights.Admin:
		login.Role = pages.RoleAdmin
	case len(rights.Groups) > 0:
		login.Role, login.Groups = pages.RoleGroupAdmin, rights.Groups
	default:
		return pages.Login{}, sessions.ErrNotFound
	}
	return login, nil
}

// noLogin answers at the addresses of a login by DingTalk where there is none.
func (e *entry) noLogin(w http.ResponseWriter, r *http.Request) {
	e.fail(w, r, e.pages.Language(w, r), pages.Login{}, errNotFound)
}

// beginLogin sends a state that this browser alone knows. The browser keeps it, with the path that the login leads to and a signature: a
// login that did not begin here asks DingTalk nothing. A begun login takes nothing of the server, so that no bound of an address is
// needed. All people behind a proxy would share it.
func (e *entry) beginLogin(w http.ResponseWriter, r *http.Request) {
	next := localPath(r.FormValue("next"))
	if len(next) > maxNext {
		next = "/"
	}
	state := rand.Text()
	state = strconv.FormatInt(time.Now().Add(stateTTL).Unix(), 36) + "-" + state
	kept := state + "." + base64.RawURLEncoding.EncodeToString([]byte(next))
	http.SetCookie(w, e.stateCookie(r, kept+"."+e.cfg.Identity.Sign(kept), stateTTL))
	http.Redirect(w, r, e.cfg.Identity.Address(state), http.StatusSeeOther)
}

// stateCookie is lax: DingTalk's page leads back from another site, so a strict cookie would be missing.
func (e *entry) stateCookie(r *http.Request, state string, life time.Duration) *http.Cookie {
	cookie := e.cookie(r, stateCookie, state, life)
	cookie.SameSite, cookie.Path = http.SameSiteLaxMode, CallbackPath
	cookie.Secure = cookie.Secure || e.cfg.Identity.Secure()
	return cookie
}

// endLogin checks the state before anything is asked of DingTalk: a forged or repeated answer costs one statement. The state is used
// up even if the login fails later.
func (e *entry) endLogin(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, e.stateCookie(r, "", -time.Second))
	state, next, ok := e.continued(r)
	if !ok {
		e.showLogin(w, r, http.StatusBadRequest, "", "login.state")
		return
	}
	// One that was used, as in a replay, takes no place of its address and no question to DingTalk.
	switch err := e.cfg.Logins.UseState(r.Context(), hash(state), next, stateTTL); {
	case errors.Is(err, sessions.ErrNotFound):
		e.showLogin(w, r, http.StatusBadRequest, "", "login.state")
		return
	case err != nil:
		e.refuse(w, r, next, err)
		return
	}
	leave, ok := e.asking.enter(address(r))
	if !ok {
		e.showLogin(w, r, http.StatusTooManyRequests, next, "login.too_often")
		return
	}
	defer leave()
	person, err := e.identify(r)
	if err != nil {
		e.refuse(w, r, next, err)
		return
	}
	login := pages.Login{Role: pages.RolePerson, Actor: string(person.ID), Nick: person.Nick}
	allowed, err := e.inForce(login)
	if err != nil {
		zerolog.Ctx(r.Context()).Info().Msg("Console login refused: the person administers nothing")
		e.showLogin(w, r, http.StatusForbidden, next, "login.no_rights", login.Actor)
		return
	}
	if err := e.keep(w, r, login, e.cfg.Identity.Secure()); err != nil {
		e.fail(w, r, e.pages.Language(w, r), pages.Login{}, err)
		return
	}
	// A redirect would go on from the other site, without the strict cookie of the login. The page's own refresh
	// carries it.
	next = localPath(next)
	w.Header().Set("Refresh", "0; url="+next)
	_ = e.request(r, allowed, e.pages.Language(w, r)).show(w, "entered", next)
}

func newQuestions() *rate.Limiter { return rate.NewLimiter(identifyEvery, identifyAt) }

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
func (e *entry) continued(r *http.Request) (state, next string, ok bool) {
	cookie, err := r.Cookie(stateCookie)
	if err != nil {
		return "", "", false
	}
	signed := strings.LastIndexByte(cookie.Value, '.')
	if signed < 0 || !equal(cookie.Value[signed+1:], e.cfg.Identity.Sign(cookie.Value[:signed])) {
		return "", "", false
	}
	state, encoded, _ := strings.Cut(cookie.Value[:signed], ".")
	if !equal(r.FormValue("state"), state) {
		return "", "", false
	}
	until, _, _ := strings.Cut(state, "-")
	seconds, err := strconv.ParseInt(until, 36, 64)
	path, wrong := base64.RawURLEncoding.DecodeString(encoded)
	return state, string(path), err == nil && wrong == nil && time.Until(time.Unix(seconds, 0)) > 0
}

// identify asks DingTalk for a person, at most a few at once and some in a second: forged codes must not use up the calls that answers need.
// A login waits for its turn.
func (e *entry) identify(r *http.Request) (pages.Person, error) {
	ctx, stop := context.WithTimeout(r.Context(), identifyTime)
	defer stop()
	if err := e.asked.Wait(ctx); err != nil {
		return pages.Person{}, fmt.Errorf("waiting to ask for a person: %w", err)
	}
	return e.cfg.Identity.Identify(ctx, r.FormValue("authCode"))
}

func (e *entry) refuse(w http.ResponseWriter, r *http.Request, next string, err error) {
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
	e.showLogin(w, r, status, next, wrong)
}
