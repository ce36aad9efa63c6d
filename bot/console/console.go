package console

import (
	"context"
	"net/http"
	"time"

	"ebb/bot/console/auth"
	"ebb/bot/console/render"
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
	Rights   func(sessions.UserID) auth.Rights
}

// Console is the handler of all pages.
type Console struct{ handler http.Handler }

// route is a page or an action, with the roles that may use it.
type route struct {
	pattern string
	may     func(*request) bool
	answer  handler
}

// routes is the table of all pages behind the login.
func routes(cfg Config, running exports) []route {
	facts, privacy := facts{cfg.Manage}, privacy{cfg.Privacy, cfg.Records}
	attention, schedules := attention{cfg.Manage}, schedules{cfg.Location, cfg.Manage}
	people := people{records: cfg.Records, reads: cfg.Reads, manage: cfg.Manage, exports: running}
	return []route{
		{"GET /{$}", anyRole, overview{cfg.Calls}.show},
		{"GET /sessions", anyRole, listSessions},
		{"GET /sessions/{key}", anyRole, conversation{cfg.Policy, cfg.Requests, cfg.Location}.show},
		{"GET /sessions/{key}/work", anyRole, showWork},
		{"GET /sessions/{key}/search", (*request).actsOnAll, search{cfg.Search}.show},
		{"POST /sessions/{key}/compact", (*request).acts, compact{cfg.Manage}.request},
		{"POST /sessions/{key}/undo", (*request).acts, undo{cfg.Manage}.do},
		{"GET /compactions", anyRole, compactions{cfg.Location}.list},
		{"GET /compactions/{session}/{id}", anyRole, showAttempt},
		{"GET /memories", anyRole, listMemories},
		{"GET /memories/{id}", anyRole, showMemory},
		{"POST /memories/{id}/promote", (*request).actsOnAll, facts.promote},
		{"POST /memories/{id}/forget", (*request).acts, facts.forget},
		{"GET /people", (*request).whole, people.list},
		{"GET /people/{id}", (*request).whole, people.person},
		{"GET /people/{id}/export", (*request).actsOnAll, people.export},
		{"POST /people/{id}/forget", (*request).actsOnAll, people.forget},
		{"GET /usage", anyRole, usage{cfg.Records, cfg.BotName, running}.show},
		{"GET /restarts", (*request).whole, listRestarts},
		{"GET /attention", anyRole, attention.list},
		{"POST /debts/{key}/retry", (*request).acts, attention.retryDebt},
		{"POST /messages/{id}/retry", (*request).acts, attention.retry},
		{"GET /schedules", anyRole, schedules.list},
		{"POST /schedules/{key}/{id}/cancel", (*request).acts, schedules.cancel},
		{"GET /approvals", anyRole, listApprovals},
		{"GET /settings", (*request).whole, settings{cfg.Settings}.show},
		{"GET /audit", anyRole, listActions},
		{"GET /privacy", anyRole, privacy.show},
		{"GET /retention", (*request).whole, privacy.retention},
		{"/", anyRole, func(http.ResponseWriter, *request) error { return errNotFound }},
	}
}

// New returns a console.
func New(cfg Config) (*Console, error) {
	r, err := render.New(cfg.Location, cfg.Currency)
	if err != nil {
		return nil, err
	}
	tokens := auth.NewTokens(cfg.Token, cfg.ViewerToken)
	if cfg.Identity == nil {
		cfg.Rights = auth.NoRights
	}
	e := &entry{auth.NewLogins(cfg.Logins, tokens, cfg.Rights), cfg.Lists, cfg.Audit, r}
	login := &loginPage{entry: e, tokens: tokens, dingtalk: cfg.Identity != nil}
	begin, end := login.noLogin, login.noLogin
	if login.dingtalk {
		byDingTalk := newDingtalkLogin(login, cfg.Identity, cfg.Logins)
		begin, end = byDingTalk.begin, byDingTalk.end
	} else if !tokens.Configured() {
		login.code = auth.NewCode(cfg.ShowCode)
	}
	running := make(exports, maxExports)
	mux := http.NewServeMux()
	mux.Handle("GET /static/", render.Static())
	mux.HandleFunc("GET /login", login.open)
	mux.HandleFunc("POST /login", login.login)
	mux.HandleFunc("GET /login/dingtalk", begin)
	mux.HandleFunc("GET "+CallbackPath, end)
	mux.Handle("POST /logout", e.page(login.logout))
	for _, one := range routes(cfg, running) {
		mux.Handle(one.pattern, e.when(one.may, one.answer))
	}
	api{e, tokens, r.Words("en"), running}.route(mux, apiLists(cfg.Location, usage{cfg.Records, cfg.BotName, running}))
	return &Console{headers(http.NewCrossOriginProtection().Handler(http.MaxBytesHandler(mux, maxForm)))}, nil
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
