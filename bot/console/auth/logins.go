// Package auth decides which login a request of the console has: by a token, a one-time code, or the cookie of a browser.
package auth

import (
	"context"
	"crypto/rand"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"ebb/memory/pages"
	"ebb/sessions"
)

const cookieName = "ebb_console"

// TTL is the life of a login.
const TTL = 12 * time.Hour

// Rights are in force for a person. A person without any may not log in.
type Rights struct {
	Admin  bool
	Groups []sessions.ConversationID // groups that the person administers
}

// NoRights are those of all people without a login by DingTalk: a login of an earlier configuration ends.
func NoRights(sessions.UserID) Rights { return Rights{} }

// Logins are those of browsers, which a cookie names.
type Logins struct {
	store  logins
	tokens *Tokens
	rights func(sessions.UserID) Rights
}

type logins interface {
	Login(ctx context.Context, hash []byte, l pages.Login, ttl time.Duration) error
	Authenticate(ctx context.Context, hash []byte) (pages.Login, error)
	Logout(ctx context.Context, hash []byte) error
}

// NewLogins returns the logins that end with a change of the tokens. A person has the rights at each request.
func NewLogins(store logins, tokens *Tokens, rights func(sessions.UserID) Rights) *Logins {
	return &Logins{store, tokens, rights}
}

// Authenticate returns [sessions.ErrNotFound] for a request without a login.
func (l *Logins) Authenticate(r *http.Request) (pages.Login, error) {
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return pages.Login{}, sessions.ErrNotFound
	}
	login, err := l.store.Authenticate(r.Context(), l.tokens.key(cookie.Value))
	if err != nil {
		return pages.Login{}, err
	}
	return l.InForce(login)
}

// InForce returns a login with the rights that its person has now. One without rights is no login, and [sessions.ErrNotFound].
func (l *Logins) InForce(login pages.Login) (pages.Login, error) {
	if login.Role != pages.RolePerson {
		return login, nil
	}
	switch rights := l.rights(sessions.UserID(login.Actor)); {
	case rights.Admin:
		login.Role = pages.RoleAdmin
	case len(rights.Groups) > 0:
		login.Role, login.Groups = pages.RoleGroupAdmin, rights.Groups
	default:
		return pages.Login{}, sessions.ErrNotFound
	}
	return login, nil
}

// Keep stores a login and gives the browser its cookie; secure says that the browser uses TLS, whatever the request shows.
func (l *Logins) Keep(w http.ResponseWriter, r *http.Request, login pages.Login, secure bool) error {
	token := rand.Text()
	if err := l.store.Login(r.Context(), l.tokens.key(token), login, TTL); err != nil {
		return err
	}
	cookie := Cookie(r, cookieName, token, TTL)
	cookie.Secure = cookie.Secure || secure
	http.SetCookie(w, cookie)
	return nil
}

// End deletes the login of a request.
func (l *Logins) End(w http.ResponseWriter, r *http.Request) error {
	if cookie, err := r.Cookie(cookieName); err == nil {
		if err := l.store.Logout(r.Context(), l.tokens.key(cookie.Value)); err != nil {
			return err
		}
	}
	http.SetCookie(w, Cookie(r, cookieName, "", -time.Second))
	return nil
}

// Cookie returns a cookie that no other site's request carries; life below 0 deletes it.
func Cookie(r *http.Request, name, value string, life time.Duration) *http.Cookie {
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
