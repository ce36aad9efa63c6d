package console

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/time/rate"

	"ebb/bot/console/render"
	"ebb/memory/pages"
	"ebb/sessions"
)

const cookieName = "ebb_console"

// codeActor is the actor of a login by a one-time code.
const codeActor = "code"

const loginTTL = 12 * time.Hour

type entry struct {
	cfg      Config
	pages    *render.Renderer
	code     *oneTimeCode  // nil where logins are configured
	dingtalk bool          // people log in by DingTalk
	wrong    *throttle     // wrong tokens
	asked    *rate.Limiter // questions to DingTalk for a person
	asking   *shares       // those that wait
}

// page sends people who are not logged in to the login.
func (e *entry) page(answer handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		words := e.pages.Language(w, r)
		login, err := e.authenticate(r)
		switch {
		case err == nil:
		case !errors.Is(err, sessions.ErrNotFound):
			e.fail(w, r, words, pages.Login{}, err)
			return
		case r.Method != http.MethodGet:
			http.Error(w, words.T("error.login"), http.StatusUnauthorized)
			return
		default:
			http.Redirect(w, r, "/login?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
			return
		}
		req, err := e.as(r, login, words)
		if err == nil {
			err = answer(w, req)
		}
		if err != nil {
			e.fail(w, r, words, login, err)
		}
	})
}

// when is [entry.page] for the roles that may use it.
func (e *entry) when(may func(*request) bool, answer handler) http.Handler {
	return e.page(func(w http.ResponseWriter, r *request) error {
		if !may(r) {
			return errForbidden
		}
		return answer(w, r)
	})
}

func (e *entry) request(r *http.Request, login pages.Login, words render.Words) *request {
	return &request{Request: r, login: login, words: words, pages: e.pages, audit: e.cfg.Audit}
}

func (e *entry) as(r *http.Request, login pages.Login, words render.Words) (*request, error) {
	req := e.request(r, login, words)
	var only []sessions.Key
	if !req.whole() {
		var err error
		if only, err = e.cfg.Lists.GroupSessions(r.Context(), login.Groups); err != nil {
			return nil, err
		}
	}
	req.lists = restricted{all: e.cfg.Lists, only: only}
	return req, nil
}

// fail logs faults of the server; their texts stay there.
func (e *entry) fail(w http.ResponseWriter, r *http.Request, words render.Words, login pages.Login, err error) {
	status, bad := statusOf(err)
	if status >= http.StatusInternalServerError {
		zerolog.Ctx(r.Context()).Error().Err(err).Str("path", r.URL.Path).Msg("Console request failed")
	}
	_ = e.request(r, login, words).showAs(w, status, "error", words.T(bad.code, bad.args...))
}

// authenticate returns [sessions.ErrNotFound] for a request without a login.
func (e *entry) authenticate(r *http.Request) (pages.Login, error) {
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return pages.Login{}, sessions.ErrNotFound
	}
	login, err := e.cfg.Logins.Authenticate(r.Context(), e.loginKey(cookie.Value))
	if err != nil {
		return pages.Login{}, err
	}
	return e.inForce(login)
}

// hasLogins reports whether the configuration lets anyone log in. Otherwise a one-time code does.
func (e *entry) hasLogins() bool {
	return e.cfg.Token != "" || e.cfg.ViewerToken != "" || e.dingtalk
}

// role compares both tokens, by their hashes, so that the time reveals nothing.
func (e *entry) role(token string) (pages.Login, bool) {
	isAdmin, isViewer := equal(token, e.cfg.Token), equal(token, e.cfg.ViewerToken)
	switch {
	case isAdmin:
		return pages.Login{Role: pages.RoleAdmin, Actor: "admin.token"}, true
	case isViewer:
		return pages.Login{Role: pages.RoleViewer, Actor: "admin.viewer_token"}, true
	}
	return pages.Login{}, false
}

// equal is false for an empty configured token.
func equal(got, want string) bool {
	same := subtle.ConstantTimeCompare(hash(got), hash(want)) == 1
	return same && want != ""
}

func hash(token string) []byte {
	h := sha256.Sum256([]byte(token))
	return h[:]
}

// loginKey depends on the configured tokens, so a changed one ends all logins.
func (e *entry) loginKey(cookie string) []byte {
	return hash(cookie + "\x00" + e.cfg.Token + "\x00" + e.cfg.ViewerToken)
}

var wrongToken = map[int]string{http.StatusUnauthorized: "login.wrong", http.StatusTooManyRequests: "login.too_often"}

type loginView struct {
	Next     string
	Wrong    string
	Tokens   bool // a token is configured
	Code     bool // a one-time code is asked for
	DingTalk bool // people can log in by DingTalk
}

// loginPage also takes a one-time code from the address, as the log shows it. A browser that loads an address twice is in by the
// first time.
func (e *entry) loginPage(w http.ResponseWriter, r *http.Request) {
	next := r.FormValue("next")
	code := r.URL.Query().Get("code")
	if e.code == nil || code == "" || r.Method != http.MethodGet {
		e.showLogin(w, r, http.StatusOK, next, "")
		return
	}
	if _, err := e.authenticate(r); err == nil {
		http.Redirect(w, r, localPath(next), http.StatusSeeOther) //nolint:gosec // localPath leads nowhere else
		return
	}
	e.admit(w, r, code, next)
}

// showLogin takes the key of a reason in wrong, empty for none.
func (e *entry) showLogin(w http.ResponseWriter, r *http.Request, status int, next, wrong string, args ...any) {
	words := e.pages.Language(w, r)
	v := loginView{Next: next, Tokens: e.cfg.Token != "" || e.cfg.ViewerToken != "", DingTalk: e.dingtalk, Code: e.code != nil}
	if wrong != "" {
		v.Wrong = words.T(wrong, args...)
	}
	_ = e.request(r, pages.Login{}, words).showAs(w, status, "login", v)
}

func (e *entry) login(w http.ResponseWriter, r *http.Request) {
	e.admit(w, r, r.PostFormValue("token"), r.PostFormValue("next"))
}

func (e *entry) admit(w http.ResponseWriter, r *http.Request, token, next string) {
	token = strings.TrimSpace(token)
	login, status := pages.Login{Role: pages.RoleAdmin, Actor: codeActor}, http.StatusOK
	if !e.code.take(token) {
		login, status = e.enter(r, token)
	}
	if status != http.StatusOK {
		wrong := wrongToken[status]
		if e.code != nil && status == http.StatusUnauthorized {
			wrong = "login.wrong_code"
		}
		e.showLogin(w, r, status, next, wrong)
		return
	}
	if err := e.keep(w, r, login, false); err != nil {
		e.fail(w, r, e.pages.Language(w, r), pages.Login{}, err)
		return
	}
	http.Redirect(w, r, localPath(next), http.StatusSeeOther) //nolint:gosec // localPath leads nowhere else
}

// keep stores a login and gives the browser its cookie; secure says that the browser uses TLS, whatever the request shows.
func (e *entry) keep(w http.ResponseWriter, r *http.Request, login pages.Login, secure bool) error {
	token := rand.Text()
	if err := e.cfg.Logins.Login(r.Context(), e.loginKey(token), login, loginTTL); err != nil {
		return err
	}
	cookie := e.cookie(r, cookieName, token, loginTTL)
	cookie.Secure = cookie.Secure || secure
	http.SetCookie(w, cookie)
	return nil
}

const wrongPause = time.Second

// enter answers a wrong token with 401, and with 429 after a pause over the bound of its address. A right token always
// enters: behind a proxy all people share an address, and one of them would lock out the others. Guessing fails by the
// length of tokens, which the configuration checks.
func (e *entry) enter(r *http.Request, token string) (pages.Login, int) {
	if login, ok := e.role(token); ok {
		return login, http.StatusOK
	}
	if e.wrong.allow(r) {
		return pages.Login{}, http.StatusUnauthorized
	}
	select {
	case <-time.After(wrongPause):
	case <-r.Context().Done():
	}
	return pages.Login{}, http.StatusTooManyRequests
}

func (e *entry) logout(w http.ResponseWriter, r *request) error {
	if cookie, err := r.Cookie(cookieName); err == nil {
		if err := e.cfg.Logins.Logout(r.Context(), e.loginKey(cookie.Value)); err != nil {
			return err
		}
	}
	http.SetCookie(w, e.cookie(r.Request, cookieName, "", -time.Second))
	http.Redirect(w, r.Request, "/login", http.StatusSeeOther)
	return nil
}

// cookie returns a cookie that no other site's request carries; life below 0 deletes it.
func (e *entry) cookie(r *http.Request, name, value string, life time.Duration) *http.Cookie {
	return &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: int(life.Seconds()), HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: isSecure(r),
	}
}

// isSecure reports whether the browser uses TLS, also where a proxy does not say so. A browser names the origin of a form. It names the site
// that a page was opened from (Sec-Fetch-Site) over TLS, and otherwise only to its own machine.
func isSecure(r *http.Request) bool {
	return r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" || strings.HasPrefix(r.Header.Get("Origin"), "https://") ||
		r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Site") != "" && !isLocal(r.Host)
}

func isLocal(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && ip.IsLoopback()
}

// oneTimeCode admits one administrator, where nothing else admits anyone. A request from the same machine is no proof: a proxy there
// passes on those of other machines.
type oneTimeCode struct {
	show func(string)

	mu    sync.Mutex
	value string
}

func newCode(show func(string)) *oneTimeCode {
	c := &oneTimeCode{show: show, value: rand.Text()}
	show(c.value)
	return c
}

// take reports whether the code is right. A right one is over, and the next one is shown.
func (c *oneTimeCode) take(code string) bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !equal(code, c.value) {
		return false
	}
	c.value = rand.Text()
	c.show(c.value)
	return true
}
