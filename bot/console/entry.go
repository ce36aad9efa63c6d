package console

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rs/zerolog"

	"ebb/pages"
	"ebb/sessions"
)

// cookieName is the cookie of a login.
const cookieName = "ebb_console"

// localActor is the actor of requests from this machine where no token is configured.
const localActor = "local"

// loginTTL is the life of a login.
const loginTTL = 12 * time.Hour

// request is an authenticated request.
type request struct {
	*http.Request
	login pages.Login
	lists pages.Lists // as the role sees them
	words words
}

// admin reports whether the role may act.
func (r *request) admin() bool { return r.login.Role == pages.RoleAdmin }

// text returns a value of the path. The storage has none with a zero byte or broken characters.
func (r *request) text(name string) (string, error) {
	v := r.PathValue(name)
	if !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
		return "", errNotFound
	}
	return v, nil
}

// key returns the session of the path.
func (r *request) key(name string) (sessions.Key, error) {
	v, err := r.text(name)
	return sessions.Key(v), err
}

// page answers a request of a person who is logged in. Others are sent to the login.
func (c *Console) page(answer func(http.ResponseWriter, *request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		words := c.pages.language(w, r)
		login, err := c.authenticate(r)
		switch {
		case err == nil:
		case !errors.Is(err, sessions.ErrNotFound):
			c.fail(w, r, words, pages.Login{}, err)
			return
		case r.Method != http.MethodGet:
			http.Error(w, words.T("error.login"), http.StatusUnauthorized)
			return
		default:
			http.Redirect(w, r, "/login?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
			return
		}
		if err := answer(w, c.as(r, login, words)); err != nil {
			c.fail(w, r, words, login, err)
		}
	})
}

// action is [Console.page] for administrators alone.
func (c *Console) action(answer func(http.ResponseWriter, *request) error) http.Handler {
	return c.page(func(w http.ResponseWriter, r *request) error {
		if !r.admin() {
			return errForbidden
		}
		return answer(w, r)
	})
}

// as returns a request with the lists of its role.
func (c *Console) as(r *http.Request, login pages.Login, words words) *request {
	lists := c.cfg.Lists
	if login.Role != pages.RoleAdmin {
		lists = masked{lists}
	}
	return &request{Request: r, login: login, lists: lists, words: words}
}

// fail shows an error. Faults of the server are logged; their texts stay there.
func (c *Console) fail(w http.ResponseWriter, r *http.Request, words words, login pages.Login, err error) {
	status, bad := statusOf(err)
	if status == http.StatusInternalServerError {
		zerolog.Ctx(r.Context()).Error().Err(err).Str("path", r.URL.Path).Msg("Console request failed")
	}
	c.pages.show(w, c.as(r, login, words), status, "error", words.T(bad.code, bad.args...))
}

// authenticate returns the login of a request, or [sessions.ErrNotFound].
func (c *Console) authenticate(r *http.Request) (pages.Login, error) {
	if c.cfg.Token == "" && c.cfg.ViewerToken == "" {
		if c.cfg.IsLocal(r) {
			return pages.Login{Role: pages.RoleAdmin, Actor: localActor}, nil
		}
		return pages.Login{}, sessions.ErrNotFound
	}
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return pages.Login{}, sessions.ErrNotFound
	}
	return c.cfg.Logins.Authenticate(r.Context(), hash(cookie.Value))
}

// role returns the login of a token. Both tokens are compared, by their hashes, so that the time reveals nothing.
func (c *Console) role(token string) (pages.Login, bool) {
	isAdmin, isViewer := equal(token, c.cfg.Token), equal(token, c.cfg.ViewerToken)
	switch {
	case isAdmin:
		return pages.Login{Role: pages.RoleAdmin, Actor: "admin.token"}, true
	case isViewer:
		return pages.Login{Role: pages.RoleViewer, Actor: "admin.viewer_token"}, true
	}
	return pages.Login{}, false
}

// equal compares a token with a configured one. An empty one equals nothing.
func equal(got, want string) bool {
	same := subtle.ConstantTimeCompare(hash(got), hash(want)) == 1
	return same && want != ""
}

func hash(token string) []byte {
	h := sha256.Sum256([]byte(token))
	return h[:]
}

// wrongToken has the words for a refused token, by status.
var wrongToken = map[int]string{http.StatusUnauthorized: "login.wrong", http.StatusTooManyRequests: "login.too_often"}

type loginView struct {
	Next  string
	Wrong string
}

func (c *Console) loginPage(w http.ResponseWriter, r *http.Request) {
	words := c.pages.language(w, r)
	c.pages.show(w, c.as(r, pages.Login{}, words), http.StatusOK, "login", loginView{Next: r.FormValue("next"), Wrong: c.unavailable(words)})
}

// unavailable explains why no login is possible; empty if one is.
func (c *Console) unavailable(words words) string {
	if c.cfg.Token == "" && c.cfg.ViewerToken == "" {
		return words.T("login.no_token")
	}
	return ""
}

func (c *Console) login(w http.ResponseWriter, r *http.Request) {
	words := c.pages.language(w, r)
	next := r.PostFormValue("next")
	login, status := c.enter(r, strings.TrimSpace(r.PostFormValue("token")))
	if status != http.StatusOK {
		c.pages.show(w, c.as(r, pages.Login{}, words), status, "login", loginView{Next: next, Wrong: words.T(wrongToken[status])})
		return
	}
	token := rand.Text()
	if err := c.cfg.Logins.Login(r.Context(), hash(token), login, loginTTL); err != nil {
		c.fail(w, r, words, pages.Login{}, err)
		return
	}
	http.SetCookie(w, c.cookie(r, token, int(loginTTL.Seconds())))
	http.Redirect(w, r, localPath(next), http.StatusSeeOther)
}

// enter checks a token: 401 for a wrong one, 429 after several.
func (c *Console) enter(r *http.Request, token string) (pages.Login, int) {
	if !c.throttle.allows(r) {
		return pages.Login{}, http.StatusTooManyRequests
	}
	login, ok := c.role(token)
	if !ok {
		c.throttle.wrong(r)
		return pages.Login{}, http.StatusUnauthorized
	}
	return login, http.StatusOK
}

func (c *Console) logout(w http.ResponseWriter, r *request) error {
	if cookie, err := r.Cookie(cookieName); err == nil {
		if err := c.cfg.Logins.Logout(r.Context(), hash(cookie.Value)); err != nil {
			return err
		}
	}
	http.SetCookie(w, c.cookie(r.Request, "", -1))
	http.Redirect(w, r.Request, "/login", http.StatusSeeOther)
	return nil
}

func (c *Console) cookie(r *http.Request, value string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: cookieName, Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https",
	}
}

// localPath returns a path of this console, or its start: a link must not lead elsewhere after the login.
func localPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n") {
		return "/"
	}
	return next
}

// audited records an action, executes it and records its end. Nothing is done without the record.
func (c *Console) audited(r *request, action string, key sessions.Key, detail string, do func(context.Context) error) error {
	a := pages.Action{Actor: r.login.Actor, Action: action, Key: key, Detail: detail}
	var err error
	if a.ID, err = c.cfg.Audit.Begin(r.Context(), a); err != nil {
		return err
	}
	outcome := "done"
	done := do(r.Context())
	if done != nil {
		outcome = "failed"
		if status, bad := statusOf(done); status < http.StatusInternalServerError {
			outcome = bad.code
		}
	}
	if err := c.cfg.Audit.End(context.WithoutCancel(r.Context()), a, outcome); err != nil {
		zerolog.Ctx(r.Context()).Error().Err(err).Msg("End of an action is not in the audit")
	}
	return done
}
