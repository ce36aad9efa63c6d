package config

import (
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"ebb/bot/config/strict"
)

// AdminConfig has the settings of health, metrics and console.
type AdminConfig struct {
	// Listen is host:port; empty: no server.
	Listen string `json:"listen"`
	// Token admits administrators; best 16 characters or more. Without any way to log in, the process logs a one-time code.
	Token Secret `json:"token"`
	// ViewerToken admits viewers, who change nothing and see private chats masked; best 16 characters or more.
	ViewerToken   Secret      `json:"viewer_token"`
	DingTalkLogin LoginConfig `json:"dingtalk_login"`
}

// LoginConfig has the settings of logins to the console by DingTalk.
type LoginConfig struct {
	// RedirectURI is the console's address with [LoginPath], as registered with the application. Empty: no such logins.
	RedirectURI string `json:"redirect_uri"`
	// AuthorizeURL is the page on which a person agrees.
	AuthorizeURL string `json:"authorize_url"`
}

// minToken is the length in characters below which a token can be guessed. A right token enters however many wrong ones
// came before it, so that no administrator is locked out; only its length stands against guesses. 16 random hexadecimal
// digits are 64 bits.
const minToken = 16

// LoginPath is the path of the console that DingTalk's page leads back to.
const LoginPath = "/login/dingtalk/callback"

func defaultLogin() LoginConfig {
	return LoginConfig{AuthorizeURL: "https://login.dingtalk.com/oauth2/auth"}
}

func (a *AdminConfig) check(k *strict.Source) {
	host, port, err := net.SplitHostPort(a.Listen)
	n, portErr := strconv.Atoi(port)
	k.Want(a.Listen == "" || err == nil && portErr == nil && n >= 0 && n <= 65535 && listenForm.MatchString(host), "admin.listen", strconv.Quote(a.Listen),
		`host:port, such as "127.0.0.1:8080", or empty for none`)
	l := a.DingTalkLogin
	k.Want(l.RedirectURI == "" || isSafe(l.RedirectURI, LoginPath), "admin.dingtalk_login.redirect_uri", strconv.Quote(l.RedirectURI),
		"an https address that ends in %s, such as \"https://ebb.example.com%s\", or empty for none", LoginPath, LoginPath)
	for path, token := range map[string]Secret{"admin.token": a.Token, "admin.viewer_token": a.ViewerToken} {
		wantSecret(k, path, token.Reveal(), "a token")
		k.Advise(strings.TrimSpace(token.Reveal()) == token.Reveal(), path, "has blanks around it, which are a part of it")
	}
	if a.ViewerToken.Reveal() != "" && a.ViewerToken.Reveal() == a.Token.Reveal() {
		k.Fail("admin.viewer_token", "the same as admin.token, want another one: its holders change nothing")
	}
	k.Want(isSafe(l.AuthorizeURL, ""), "admin.dingtalk_login.authorize_url", strconv.Quote(l.AuthorizeURL), "an https address without a query")
}

var listenForm = regexp.MustCompile(`^[^\s/]*$`)

// warn records short tokens. They are no errors: an installation with one must start after an update.
func (a *AdminConfig) warn(src *strict.Source, isAdministered bool) {
	for path, got := range map[string]Secret{"admin.token": a.Token, "admin.viewer_token": a.ViewerToken} {
		if n := utf8.RuneCountInString(got.Reveal()); n > 0 && n < minToken {
			src.Warn(path, "has %d characters, and can be guessed: take at least %d random ones", n, minToken)
		}
	}
	if a.DingTalkLogin.RedirectURI != "" && !isAdministered {
		src.Warn("admin.dingtalk_login.redirect_uri", "admits no one: agent.admins and the admins of groups are empty")
	}
}

// isSafe accepts https, or this machine, with nothing but a host and the path; an empty path is any.
func isSafe(address, path string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || path != "" && u.EscapedPath() != path {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	local := u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
	return u.Scheme == "https" || u.Scheme == "http" && local
}
