package console

import (
	"context"
	"errors"
	"net/http"
	"time"

	"ebb/bot/manage"
	"ebb/compaction"
	"ebb/memory"
	"ebb/memory/pages"
	"ebb/sessions"
)

// Config is what a [Console] needs.
type Config struct {
	Lists    pages.Lists
	Logins   pages.Logins
	Audit    pages.Audit
	Records  pages.Records
	Requests pages.Requests
	// Search finds memories and events as the bot does; see [memory.ReadStore].
	Search func(context.Context, memory.Reader, memory.Query) ([]memory.Hit, error)
	Manage *manage.Manager
	// Reads previews and exports people, with the exports in the audit, over connections for which no message waits.
	Reads *manage.Manager
	// Policy returns the compaction settings in force for a session.
	Policy func(sessions.Session) compaction.Settings
	// Settings returns the configuration as JSON, with masked secrets, and its keys that wait for a restart.
	Settings func() (text []byte, waiting []string, err error)
	// Privacy returns the configuration in force that concerns data about people.
	Privacy func() Privacy
	// Calls returns the month's calls of each bot to DingTalk's open API. nil: they are not counted.
	Calls func() []BotCalls
	// BotName names a robot, also a former one; empty: it is unknown.
	BotName  func(sessions.RobotCode) string
	Location *time.Location
	// Currency is that of the configured prices; empty: unknown.
	Currency func() string
	// Token makes an administrator, and ViewerToken a viewer; empty: none. Without both and without Identity, a one-time code
	// makes an administrator.
	Token, ViewerToken string
	// ShowCode shows a one-time code to those who run the process: the first one, and the next after each use.
	ShowCode func(code string)
	// Identity logs people in by DingTalk, with the rights that Rights returns at each request. nil: by token alone, with no rights.
	Identity pages.Identity
	Rights   func(sessions.UserID) Rights
}

// noRights are those of all people without a login by DingTalk: a login from before is none any more.
func noRights(sessions.UserID) Rights { return Rights{} }

// Rights are in force for a person. A person without any may not log in.
type Rights struct {
	Admin  bool
	Groups []sessions.ConversationID // groups that the person administers
}

// Console is the handler of all pages.
type Console struct {
	cfg     Config
	pages   *renderer
	entry   *entry // logins, and the rights of a request
	handler http.Handler
	exports chan struct{} // semaphore
}

// Bounds of answers: an export has many rows, and reads them in pages while its reader takes them.
const (
	maxExports = 2
	exportTime = 15 * time.Minute
	answerTime = time.Minute
)

// export bounds the exports, and the time that the reader of one may take. The caller calls done at the end.
func (c *Console) export(w http.ResponseWriter) (done func(), err error) {
	select {
	case c.exports <- struct{}{}:
	default:
		return nil, errExports
	}
	within(w, exportTime)
	return func() { <-c.exports }, nil
}

// within ends the connection of a reader that does not take the answer in time.
func within(w http.ResponseWriter, d time.Duration) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(d)) // some writers of tests have none
}

// New returns a console.
func New(cfg Config) (*Console, error) {
	r, err := newRenderer(cfg.Location, cfg.Currency)
	if err != nil {
		return nil, err
	}
	e := &entry{
		cfg: cfg, pages: r, wrong: newThrottle(wrongEvery, wrongAtOnce), asked: newQuestions(), asking: &shares{most: maxIdentify, taken: map[string]int{}},
	}
	c := &Console{cfg: cfg, pages: r, entry: e, exports: make(chan struct{}, maxExports)}
	begin, end := e.noLogin, e.noLogin
	if cfg.Identity != nil {
		e.dingtalk, begin, end = true, e.beginLogin, e.endLogin
	} else {
		e.cfg.Rights = noRights // logins of an earlier configuration end
	}
	if !e.hasLogins() {
		e.code = newCode(cfg.ShowCode)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /static/", static())
	mux.HandleFunc("GET /login", e.loginPage)
	mux.HandleFunc("POST /login", e.login)
	mux.HandleFunc("GET /login/dingtalk", begin)
	mux.HandleFunc("GET "+CallbackPath, end)
	mux.Handle("POST /logout", e.page(e.logout))
	mux.Handle("GET /{$}", e.page(c.overview))
	mux.Handle("GET /sessions", e.page(c.sessions))
	mux.Handle("GET /sessions/{key}", e.page(c.session))
	mux.Handle("GET /sessions/{key}/work", e.page(c.work))
	mux.Handle("GET /compactions", e.page(c.compactions))
	mux.Handle("GET /compactions/{session}/{id}", e.page(c.attempt))
	mux.Handle("GET /memories", e.page(c.memories))
	mux.Handle("GET /memories/{id}", e.page(c.memory))
	mux.Handle("GET /sessions/{key}/search", e.wholeAction(c.search))
	mux.Handle("GET /people", e.whole(c.people))
	mux.Handle("POST /memories/{id}/promote", e.wholeAction(c.promote))
	mux.Handle("GET /people/{id}", e.whole(c.person))
	mux.Handle("GET /usage", e.page(c.usage))
	mux.Handle("GET /restarts", e.whole(c.restarts))
	mux.Handle("GET /attention", e.page(c.attention))
	mux.Handle("GET /schedules", e.page(c.schedules))
	mux.Handle("GET /approvals", e.page(c.approvals))
	mux.Handle("POST /schedules/{key}/{id}/cancel", e.action(c.cancelSchedule))
	mux.Handle("GET /settings", e.whole(c.settings))
	mux.Handle("GET /audit", e.page(c.audit))
	mux.Handle("GET /privacy", e.page(c.privacy))
	mux.Handle("GET /retention", e.whole(c.retention))
	mux.Handle("POST /sessions/{key}/compact", e.action(c.compact))
	mux.Handle("POST /debts/{key}/retry", e.action(c.retryDebt))
	mux.Handle("POST /sessions/{key}/undo", e.action(c.undo))
	mux.Handle("POST /memories/{id}/forget", e.action(c.forgetMemory))
	mux.Handle("POST /people/{id}/forget", e.wholeAction(c.forgetPerson))
	mux.Handle("GET /people/{id}/export", e.wholeAction(c.exportPerson))
	mux.Handle("POST /messages/{id}/retry", e.action(c.retry))
	c.routeAPI(mux)
	mux.Handle("/", e.page(func(http.ResponseWriter, *request) error { return errNotFound }))
	c.handler = headers(http.NewCrossOriginProtection().Handler(http.MaxBytesHandler(mux, maxForm)))
	return c, nil
}

const maxForm = 64 << 10

// ServeHTTP implements http.Handler.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead { // an action may take longer
		within(w, answerTime)
	}
	c.handler.ServeHTTP(w, r)
}

// headers allows the pages their own style and script, and nothing from elsewhere.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "+
			"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
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
