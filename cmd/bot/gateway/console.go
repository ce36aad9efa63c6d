package gateway

import (
	"net/http"
	"sync/atomic"

	"ebb/bot/admin"
	"ebb/bot/config"
	"ebb/bot/console"
	"ebb/bot/manage"
	"ebb/compaction"
	"ebb/sessions"
	"ebb/sql"
)

// Manager returns the actions of operators on a database.
func Manager(cfg *config.Config, s *sql.Store) *manage.Manager {
	return manage.New(manage.Config{Rights: s, Operators: s, Settings: policyOf(cfg)})
}

// policyOf returns the compaction settings in force for a session: its own over its group's over the common ones.
func policyOf(cfg *config.Config) func(sessions.Session) compaction.Settings {
	return func(session sessions.Session) compaction.Settings {
		settings, groups := cfg.Policies()
		if own, ok := groups[session.ConversationID]; ok {
			settings = own
		}
		if own, err := cfg.Own(session.ConversationID, session.Settings); err == nil && session.Settings != "" {
			settings = own
		}
		return settings
	}
}

// openConsole builds the pages for administrators.
func (g *gateway) openConsole() (http.Handler, error) {
	lists := g.store.Pages()
	cfg := console.Config{
		Lists: lists, Logins: lists, Audit: lists, Manage: Manager(g.cfg, g.store), Policy: policyOf(g.cfg), Settings: g.cfg.JSON,
		Location: g.location, Token: g.cfg.Admin.Token.Reveal(), ViewerToken: g.cfg.Admin.ViewerToken.Reveal(), IsLocal: admin.Local,
	}
	if g.calls != nil {
		cfg.Calls = func() (int64, int64) {
			s := g.calls.Status()
			return s.Calls, s.Quota
		}
	}
	return console.New(cfg)
}

// consoleOf serves the console of a gateway once it runs.
func consoleOf(running *atomic.Pointer[gateway]) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g := running.Load(); g != nil {
			g.console.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Retry-After", "2")
		http.Error(w, "starting", http.StatusServiceUnavailable)
	})
}
