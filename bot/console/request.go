package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rs/zerolog"

	"ebb/bot/console/render"
	"ebb/bot/manage"
	"ebb/memory"
	"ebb/memory/pages"
	"ebb/sessions"
)

// request is one with a login: its role decides what it sees, and its answers are in its language.
type request struct {
	*http.Request
	login pages.Login
	lists restricted
	words render.Words
	pages *render.Renderer
	audit pages.Audit
}

// show answers with a page. It returns nil, so that a handler can end with it.
func (r *request) show(w http.ResponseWriter, page string, data any) error { //nolint:unparam // see above
	r.showAs(w, http.StatusOK, page, data)
	return nil
}

func (r *request) showAs(w http.ResponseWriter, status int, page string, data any) {
	r.pages.Show(w, r.Request, status, render.View{
		Lang: r.words.Lang, Page: page, Path: r.URL.RequestURI(), Role: r.login.Role, Admin: r.acts(), Whole: r.whole(), Nick: r.login.Nick, Data: data,
	})
}

// handler answers a request; the reader gets the words for its error.
type handler func(http.ResponseWriter, *request) error

// operator is an administrator where the action has no name of its own for them.
var operator = manage.Actor{Role: manage.Operator}

// anyRole is for pages of which each role sees its own part.
func anyRole(*request) bool { return true }

// acts is for administrators, also those of a group: the answer must find its target in the lists of the request.
func (r *request) acts() bool {
	return r.login.Role == pages.RoleAdmin || r.login.Role == pages.RoleGroupAdmin
}

func (r *request) operator() manage.Actor {
	return manage.Actor{Role: manage.Operator, Name: r.login.Actor}
}

// whole is for data of all groups together.
func (r *request) whole() bool {
	return r.login.Role == pages.RoleAdmin || r.login.Role == pages.RoleViewer
}

func (r *request) actsOnAll() bool { return r.acts() && r.whole() }

// text refuses values that the storage can't have: a zero byte or broken characters.
func (r *request) text(name string) (string, error) {
	v := r.PathValue(name)
	if !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
		return "", errNotFound
	}
	return v, nil
}

func (r *request) key(name string) (sessions.Key, error) {
	v, err := r.text(name)
	return sessions.Key(v), err
}

func (r *request) session() (sessions.Session, error) {
	key, err := r.key("key")
	if err != nil {
		return sessions.Session{}, err
	}
	return r.lists.Session(r.Context(), key)
}

func (r *request) memory() (m memory.Memory, values []memory.Memory, err error) {
	id, err := parseID(r.PathValue("id"))
	if err != nil {
		return m, nil, err
	}
	return r.lists.Memory(r.Context(), id)
}

// maxArguments bounds the words of a form, in characters.
const maxArguments = 500

func parseID(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id <= 0 {
		return 0, errNotFound
	}
	return id, nil
}

// opened reads the texts of one page; detail names it within its conversation. An administrator's look into a private
// chat is audited and not masked.
func (r *request) opened(private bool, key sessions.Key, detail string, read func(context.Context, pages.Lists) error) error {
	if !private || r.login.Role != pages.RoleAdmin {
		return read(r.Context(), r.lists)
	}
	return r.audited(manage.ViewedPrivate, key, detail, func(ctx context.Context) error { return read(ctx, r.lists.all) })
}

func (r *request) audited(action string, key sessions.Key, detail string, do func(context.Context) error) error {
	return r.auditedAs(pages.Action{Action: action, Key: key, Detail: detail}, do)
}

func (r *request) auditedAs(what pages.Action, do func(context.Context) error) error {
	what.Actor = r.login.Actor
	return manage.Audited(r.Context(), r.audit, what, outcomeOf, do)
}

func outcomeOf(err error) string {
	if err == nil {
		return "done"
	}
	if status, bad := statusOf(err); status < http.StatusInternalServerError {
		return bad.code
	}
	return "failed"
}

// localPath returns a path of this console, or its start: a link must not lead elsewhere after the login.
func localPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n") {
		return "/"
	}
	return next
}

type badRequest struct {
	code string // key of the catalog
	args []any
}

// Error implements error.
func (b badRequest) Error() string { return b.code }

var (
	errNotFound  = badRequest{code: "error.not_found"}
	errForbidden = badRequest{code: "error.forbidden"}
	// errOthersKnow refuses an administrator of a group.
	errOthersKnow = badRequest{code: "error.others_know"}
	errExports    = badRequest{code: "error.exports"}
)

func isNotFound(err error) bool { return errors.Is(err, sessions.ErrNotFound) }

// statusOf takes words of the catalog, as the error of the storage may hold texts.
func statusOf(err error) (int, badRequest) {
	var bad badRequest
	switch {
	case errors.As(err, &bad) && bad.code == errNotFound.code, errors.Is(err, sessions.ErrNotFound):
		return http.StatusNotFound, errNotFound
	case bad.code == errForbidden.code, bad.code == errOthersKnow.code:
		return http.StatusForbidden, bad
	case bad.code == errExports.code:
		return http.StatusTooManyRequests, bad
	case bad.code != "":
		return http.StatusBadRequest, bad
	case errors.Is(err, pages.ErrCursor):
		return http.StatusBadRequest, badRequest{code: "error.cursor"}
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable, badRequest{code: "error.slow"}
	}
	return http.StatusInternalServerError, badRequest{code: "error.internal"}
}

// apiError logs faults of the server; their texts stay there.
func apiError(r *http.Request, err error) (int, badRequest) {
	status, bad := statusOf(err)
	if status >= http.StatusInternalServerError {
		zerolog.Ctx(r.Context()).Error().Err(err).Str("path", r.URL.Path).Msg("API request failed")
	}
	return status, bad
}
