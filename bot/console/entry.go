package console

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/rs/zerolog"

	"ebb/bot/console/auth"
	"ebb/bot/console/render"
	"ebb/memory/pages"
	"ebb/sessions"
)

// entry gives a request its login, and its role the lists that it sees.
type entry struct {
	logins *auth.Logins
	lists  pages.Lists
	audit  pages.Audit
	pages  *render.Renderer
}

// page sends people who are not logged in to the login.
func (e *entry) page(answer handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		words := e.pages.Language(w, r)
		login, err := e.logins.Authenticate(r)
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
	return &request{Request: r, login: login, words: words, pages: e.pages, audit: e.audit}
}

func (e *entry) as(r *http.Request, login pages.Login, words render.Words) (*request, error) {
	req := e.request(r, login, words)
	var only []sessions.Key
	if !req.whole() {
		var err error
		if only, err = e.lists.GroupSessions(r.Context(), login.Groups); err != nil {
			return nil, err
		}
	}
	req.lists = restricted{all: e.lists, only: only}
	return req, nil
}

// fail logs faults of the server; their texts stay there.
func (e *entry) fail(w http.ResponseWriter, r *http.Request, words render.Words, login pages.Login, err error) {
	status, bad := statusOf(err)
	if status >= http.StatusInternalServerError {
		zerolog.Ctx(r.Context()).Error().Err(err).Str("path", r.URL.Path).Msg("Console request failed")
	}
	e.request(r, login, words).showAs(w, status, "error", words.T(bad.code, bad.args...))
}
