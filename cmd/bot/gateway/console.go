package gateway

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"ebb/bot/config"
	"ebb/bot/console"
	"ebb/bot/console/auth"
	"ebb/bot/dingtalk/login"
	"ebb/bot/manage"
	"ebb/compaction"
	"ebb/memory/pages"
	"ebb/sessions"
	"ebb/sql"
)

// Manager returns the actions of operators on a database.
func Manager(cfg *config.Config, s *sql.Store) *manage.Manager {
	return manage.New(manage.Config{
		Audit: s.Audit(), Rights: s.Rights, Erasures: s.Erasure, Operators: operatorsOn(s), Schedules: s.Schedules,
		Settings: policyOf(func() *config.Config { return cfg }),
	})
}

func operatorsOn(s *sql.Store) manage.Operators {
	return manage.Operators{
		Facts: s.Facts, Sessions: s.Sessions, Erasure: s.Erasure, Compactions: s.Compactions, Requests: s.Requests, Flushes: s.Flushes,
		Letters: s.Lists, Calls: s.Calls,
	}
}

// A session's own settings go over its group's, and those over the common ones.
func policyOf(inForce func() *config.Config) func(sessions.Session) compaction.Settings {
	return func(session sessions.Session) compaction.Settings {
		cfg := inForce()
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

// openConsole gives pages and actions different stores: pages read through connections of their own, so that a slow page never takes
// one from a turn. Values that a reload may change are functions.
func (g *gateway) openConsole() (http.Handler, error) {
	lists, reads, policy := g.store.Pages(), g.store.ForPages(), policyOf(g.inForce.Load)
	cfg := console.Config{
		Lists: lists, Logins: lists, Audit: lists, Records: lists, Requests: reads.Requests, Search: reads.Search.Search, Reads: manage.New(manage.Config{Audit: lists, Rights: reads.Rights, Erasures: reads.Erasure}), Settings: g.settings, Privacy: g.privacy, Policy: policy,
		Manage: manage.New(manage.Config{
			Rights: g.store.Rights, Erasures: g.store.Erasure, Operators: operatorsOn(g.store), Schedules: g.store.Schedules, Audit: manage.Unrecorded{}, Settings: policy,
			Resolve: func(id sessions.ConversationID, settings string) (compaction.Settings, error) {
				return g.inForce.Load().Own(id, settings)
			},
		}),
		BotName: g.robots.Name, Identity: g.login, Rights: g.rights,
		Location: g.location, Currency: func() string { return g.inForce.Load().LLM.Currency }, Token: g.cfg.Admin.Token.Reveal(), ViewerToken: g.cfg.Admin.ViewerToken.Reveal(), ShowCode: g.showCode,
	}
	if len(g.calls) > 0 {
		cfg.Calls = g.callsByBot
	}
	return console.New(cfg)
}

// showCode is the one place that logs a secret, as the only proof that a person runs the process.
func (g *gateway) showCode(code string) {
	if g.address == "" {
		return
	}
	g.log.Info().Str("console", "http://"+g.address+"/login?code="+code).Msg("Console has no token, and asks for a one-time code")
}

// reachableAddress returns an address of the admin server for a browser on this machine.
func reachableAddress(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip, parsed := netip.ParseAddr(host); err == nil && parsed == nil && ip.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return address
}

func (g *gateway) rights(person sessions.UserID) auth.Rights {
	cfg := g.inForce.Load()
	r := auth.Rights{Admin: slices.Contains(cfg.Agent.Admins, string(person))}
	for _, id := range cfg.Administers(string(person)) {
		r.Groups = append(r.Groups, sessions.ConversationID(id))
	}
	return r
}

// openLogin returns nil if the login is not configured.
func (g *gateway) openLogin(tokens login.Tokens) pages.Identity {
	d, l := g.cfg.DingTalk[0], g.cfg.Admin.DingTalkLogin
	if l.RedirectURI == "" {
		return nil
	}
	return login.New(login.Config{
		ClientID: d.ClientID, ClientSecret: d.ClientSecret.Reveal(), APIBase: strings.TrimRight(d.APIBase, "/"), OAPIBase: strings.TrimRight(d.OAPIBase, "/"),
		AuthorizeURL: l.AuthorizeURL, RedirectURI: l.RedirectURI, Tokens: tokens,
	})
}

// settings returns the newest configuration, and its keys that need a restart.
func (g *gateway) settings() ([]byte, []string, error) {
	newest := g.inForce.Load()
	_, restart := g.cfg.Changes(newest)
	text, err := newest.JSON()
	return text, restart, err
}

func (g *gateway) privacy() console.Privacy {
	live := g.inForce.Load()
	p := console.Privacy{
		Retention: live.Periods(), TaskTTL: g.cfg.Agent.Memory.TaskTTL, Digest: g.cfg.Agent.Memory.Digest, External: live.Access.External,
		Embedder: hostOf(string(g.cfg.Agent.Memory.Embeddings.BaseURL)), Admin: g.cfg.Admin.Token != "", Viewer: g.cfg.Admin.ViewerToken != "",
	}
	for _, m := range live.LLM.Models {
		if host := hostOf(string(m.BaseURL)); !slices.Contains(p.Providers, host) {
			p.Providers = append(p.Providers, host)
		}
	}
	return p
}

// The rest of an address may hold secrets.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// consoleOf refuses requests until the gateway runs.
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
