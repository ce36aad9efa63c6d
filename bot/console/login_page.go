package console

import (
	"net/http"
	"strings"

	"ebb/bot/console/auth"
	"ebb/memory/pages"
)

// codeActor is the actor of a login by a one-time code.
const codeActor = "code"

// wrongToken has the words for an answer of [auth.Tokens.Enter].
var wrongToken = map[int]string{http.StatusUnauthorized: "login.wrong", http.StatusTooManyRequests: "login.too_often"}

// loginPage admits a browser by a token or a code, and offers the login by DingTalk.
type loginPage struct {
	entry    *entry
	tokens   *auth.Tokens
	code     *auth.Code // nil where logins are configured
	dingtalk bool       // people log in by DingTalk
}

type loginView struct {
	Next     string
	Wrong    string
	Tokens   bool // a token is configured
	Code     bool // a one-time code is asked for
	DingTalk bool // people can log in by DingTalk
}

// open also takes a one-time code from the address, as the log shows it. A browser that loads an address twice is in by the
// first time.
func (p *loginPage) open(w http.ResponseWriter, r *http.Request) {
	next := r.FormValue("next")
	code := r.URL.Query().Get("code")
	if p.code == nil || code == "" || r.Method != http.MethodGet {
		p.show(w, r, http.StatusOK, next, "")
		return
	}
	if _, err := p.entry.logins.Authenticate(r); err == nil {
		http.Redirect(w, r, localPath(next), http.StatusSeeOther) //nolint:gosec // localPath leads nowhere else
		return
	}
	p.admit(w, r, code, next)
}

// show takes the key of a reason in wrong, empty for none.
func (p *loginPage) show(w http.ResponseWriter, r *http.Request, status int, next, wrong string, args ...any) {
	words := p.entry.pages.Language(w, r)
	v := loginView{Next: next, Tokens: p.tokens.Configured(), DingTalk: p.dingtalk, Code: p.code != nil}
	if wrong != "" {
		v.Wrong = words.T(wrong, args...)
	}
	p.entry.request(r, pages.Login{}, words).showAs(w, status, "login", v)
}

func (p *loginPage) login(w http.ResponseWriter, r *http.Request) {
	p.admit(w, r, r.PostFormValue("token"), r.PostFormValue("next"))
}

func (p *loginPage) admit(w http.ResponseWriter, r *http.Request, token, next string) {
	token = strings.TrimSpace(token)
	login, status := pages.Login{Role: pages.RoleAdmin, Actor: codeActor}, http.StatusOK
	if !p.code.Take(token) {
		login, status = p.tokens.Enter(r, token)
	}
	if status != http.StatusOK {
		wrong := wrongToken[status]
		if p.code != nil && status == http.StatusUnauthorized {
			wrong = "login.wrong_code"
		}
		p.show(w, r, status, next, wrong)
		return
	}
	if err := p.entry.logins.Keep(w, r, login, false); err != nil {
		p.entry.fail(w, r, p.entry.pages.Language(w, r), pages.Login{}, err)
		return
	}
	http.Redirect(w, r, localPath(next), http.StatusSeeOther) //nolint:gosec // localPath leads nowhere else
}

func (p *loginPage) logout(w http.ResponseWriter, r *request) error {
	if err := p.entry.logins.End(w, r.Request); err != nil {
		return err
	}
	http.Redirect(w, r.Request, "/login", http.StatusSeeOther)
	return nil
}

// noLogin answers at the addresses of a login by DingTalk where there is none.
func (p *loginPage) noLogin(w http.ResponseWriter, r *http.Request) {
	p.entry.fail(w, r, p.entry.pages.Language(w, r), pages.Login{}, errNotFound)
}
