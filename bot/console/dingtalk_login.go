package console

import (
	"crypto/rand"
	"errors"
	"net/http"
	"time"

	"github.com/rs/zerolog"

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
)

// inForce returns a login with the rights that its person has now. One without rights is no login.
func (e *entry) inForce(login pages.Login) (pages.Login, error) {
	if login.Role != pages.RolePerson {
		return login, nil
	}
	if e.cfg.Identity == nil {
		return pages.Login{}, sessions.ErrNotFound
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

// beginLogin sends a state that this browser alone knows.
func (e *entry) beginLogin(w http.ResponseWriter, r *http.Request) {
	next := localPath(r.FormValue("next"))
	switch {
	case e.cfg.Identity == nil:
		e.fail(w, r, e.pages.language(w, r), pages.Login{}, errNotFound)
		return
	case !e.begun.allow(r):
		e.showLogin(w, r, http.StatusTooManyRequests, next, "login.begun_often")
		return
	case len(next) > maxNext:
		next = "/"
	}
	state := rand.Text()
	if err := e.cfg.Logins.BeginLogin(r.Context(), hash(state), next, stateTTL); err != nil {
		e.fail(w, r, e.pages.language(w, r), pages.Login{}, err)
		return
	}
	http.SetCookie(w, e.stateCookie(r, state, stateTTL))
	http.Redirect(w, r, e.cfg.Identity.Address(state), http.StatusSeeOther)
}

// stateCookie is lax: DingTalk's page leads back from another site, so a strict cookie would be missing.
func (e *entry) stateCookie(r *http.Request, state string, life time.Duration) *http.Cookie {
	cookie := e.cookie(r, stateCookie, state, life)
	cookie.SameSite, cookie.Path = http.SameSiteLaxMode, CallbackPath
	return cookie
}

func (e *entry) endLogin(w http.ResponseWriter, r *http.Request) {
	if e.cfg.Identity == nil {
		e.fail(w, r, e.pages.language(w, r), pages.Login{}, errNotFound)
		return
	}
	http.SetCookie(w, e.stateCookie(r, "", -time.Second))
	next, err := e.continued(r)
	if errors.Is(err, sessions.ErrNotFound) {
		e.showLogin(w, r, http.StatusBadRequest, "", "login.state")
		return
	}
	var person pages.Person
	if err == nil {
		person, err = e.cfg.Identity.Identify(r.Context(), r.FormValue("authCode"))
	}
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
	if err := e.keep(w, r, login); err != nil {
		e.fail(w, r, e.pages.language(w, r), pages.Login{}, err)
		return
	}
	// A redirect would go on from the other site, without the strict cookie of the login. The page's own refresh
	// carries it.
	next = localPath(next)
	w.Header().Set("Refresh", "0; url="+next)
	e.pages.show(w, &request{Request: r, login: allowed, words: e.pages.language(w, r)}, http.StatusOK, "entered", next)
}

// continued returns the path that the login leads to. [sessions.ErrNotFound] is a state that this browser did not
// begin, an expired one, and a used one.
func (e *entry) continued(r *http.Request) (string, error) {
	cookie, err := r.Cookie(stateCookie)
	if err != nil || !equal(r.FormValue("state"), cookie.Value) {
		return "", sessions.ErrNotFound
	}
	return e.cfg.Logins.ContinueLogin(r.Context(), hash(cookie.Value))
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
