package login

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"ebb/memory/pages"
	"ebb/sessions"
)

var _ pages.Identity = (*Login)(nil)

// Tokens has the application's access token. Its errors have no secret.
type Tokens interface {
	AccessToken(ctx context.Context) (string, error)
	// RejectToken forgets a token that DingTalk refused.
	RejectToken(ctx context.Context, token string)
}

// Config is the application and the addresses of a login; no other host is called. All fields but HTTP are required.
type Config struct {
	ClientID, ClientSecret string
	APIBase, OAPIBase      string // without a slash at the end
	AuthorizeURL           string // page on which a person agrees
	RedirectURI            string // its target, as registered with the application
	Tokens                 Tokens
	// HTTP makes the calls; nil for a default. Redirects are never followed.
	HTTP *http.Client
}

// Login implements [pages.Identity].
type Login struct {
	cfg  Config
	http *http.Client
}

// New returns a login.
func New(c Config) *Login {
	client := http.Client{}
	if c.HTTP != nil {
		client = *c.HTTP
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Login{cfg: c, http: &client}
}

const (
	callTimeout = 5 * time.Second
	maxAnswer   = 64 << 10
	maxCode     = 512
	maxID       = 512
	maxNick     = 100
)

// Address implements [pages.Identity].
func (l *Login) Address(state string) string {
	q := url.Values{
		"client_id": {l.cfg.ClientID}, "redirect_uri": {l.cfg.RedirectURI}, "response_type": {"code"}, "scope": {"openid"}, "prompt": {"consent"}, "state": {state},
	}
	return l.cfg.AuthorizeURL + "?" + q.Encode()
}

// Sign implements [pages.Identity].
func (l *Login) Sign(text string) string {
	h := hmac.New(sha256.New, []byte("console login\x00"+l.cfg.ClientSecret))
	h.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// Secure implements [pages.Identity].
func (l *Login) Secure() bool {
	return strings.HasPrefix(strings.ToLower(l.cfg.RedirectURI), "https://")
}

// Identify implements [pages.Identity].
func (l *Login) Identify(ctx context.Context, code string) (pages.Person, error) {
	if code == "" || len(code) > maxCode {
		return pages.Person{}, pages.ErrLoginCode
	}
	token, err := l.exchange(ctx, code)
	if err != nil {
		return pages.Person{}, err
	}
	union, nick, err := l.me(ctx, token)
	if err != nil {
		return pages.Person{}, err
	}
	id, err := l.staffID(ctx, union)
	return pages.Person{ID: id, Nick: nick}, err
}

type answer struct {
	status int

	Code        string      `json:"code"`    // open API; empty: done
	ErrCode     json.Number `json:"errcode"` // oapi; 0: done
	SubCode     string      `json:"sub_code"`
	AccessToken string      `json:"accessToken"`
	UnionID     string      `json:"unionId"`
	Nick        string      `json:"nick"`
	Result      struct {
		ContactType json.Number `json:"contact_type"` // 0: a member of the organization
		UserID      string      `json:"userid"`
	} `json:"result"`
}

// Texts are left out of an error: they may repeat the request.
func (a answer) reason() string {
	var codes []string
	for _, code := range []string{a.Code, a.ErrCode.String(), a.SubCode} {
		if code != "" {
			codes = append(codes, line(code, maxNick))
		}
	}
	return fmt.Sprintf("status %d %s", a.status, strings.Join(codes, " "))
}

func (l *Login) exchange(ctx context.Context, code string) (string, error) {
	a, err := l.call(ctx, http.MethodPost, l.cfg.APIBase+"/v1.0/oauth2/userAccessToken", "", map[string]string{
		"clientId": l.cfg.ClientID, "clientSecret": l.cfg.ClientSecret, "code": code, "grantType": "authorization_code",
	})
	switch {
	case err != nil:
		return "", fmt.Errorf("exchanging the code of a login: %w", err)
	case a.status == http.StatusOK && a.AccessToken != "":
		return a.AccessToken, nil
	case a.Code == "invalidClientIdOrSecret" || a.status == http.StatusForbidden:
		return "", fmt.Errorf("exchanging the code of a login: %w: %s", pages.ErrLoginSetup, a.reason())
	case a.status >= 400 && a.status < 500 && a.status != http.StatusTooManyRequests:
		return "", fmt.Errorf("exchanging the code of a login: %w: %s", pages.ErrLoginCode, a.reason())
	}
	return "", fmt.Errorf("exchanging the code of a login: %s", a.reason())
}

func (l *Login) me(ctx context.Context, token string) (union, nick string, err error) {
	a, err := l.call(ctx, http.MethodGet, l.cfg.APIBase+"/v1.0/contact/users/me", token, nil)
	switch {
	case err != nil:
		return "", "", fmt.Errorf("reading who logs in: %w", err)
	case a.status == http.StatusForbidden:
		return "", "", fmt.Errorf("reading who logs in: %w: it needs the permission Contact.User.Read: %s", pages.ErrLoginSetup, a.reason())
	case a.status != http.StatusOK || a.UnionID == "":
		return "", "", fmt.Errorf("reading who logs in: %s", a.reason())
	}
	return a.UnionID, line(a.Nick, maxNick), nil
}

// A refused token is renewed once.
func (l *Login) staffID(ctx context.Context, union string) (sessions.UserID, error) {
	for try := 0; ; try++ {
		token, err := l.cfg.Tokens.AccessToken(ctx)
		if err != nil {
			return "", fmt.Errorf("reading the staff id of a login: %w", err)
		}
		a, err := l.call(ctx, http.MethodPost, l.cfg.OAPIBase+"/topapi/user/getbyunionid?"+url.Values{"access_token": {token}}.Encode(), "",
			map[string]string{"unionid": union})
		switch {
		case err != nil:
			return "", fmt.Errorf("reading the staff id of a login: %w", err)
		case (a.ErrCode == "40014" || a.ErrCode == "42001") && try == 0:
			l.cfg.Tokens.RejectToken(ctx, token)
			continue
		case a.ErrCode == "60121":
			return "", fmt.Errorf("reading the staff id of a login: %w: %s", pages.ErrOutsider, a.reason())
		case a.ErrCode == "88" || a.ErrCode == "60011":
			return "", fmt.Errorf("reading the staff id of a login: %w: it needs the permission qyapi_get_member: %s", pages.ErrLoginSetup, a.reason())
		case a.status != http.StatusOK || a.ErrCode != "0":
			return "", fmt.Errorf("reading the staff id of a login: %s", a.reason())
		case a.Result.ContactType != "0":
			return "", fmt.Errorf("reading the staff id of a login: %w: an external contact", pages.ErrOutsider)
		case a.Result.UserID == "" || len(a.Result.UserID) > maxID || a.Result.UserID != line(a.Result.UserID, maxID):
			return "", errors.New("reading the staff id of a login: the answer has no usable id")
		}
		return sessions.UserID(a.Result.UserID), nil
	}
}

// Errors have neither the address, which may hold a token, nor the body.
func (l *Login) call(ctx context.Context, method, address, token string, body any) (answer, error) {
	ctx, stop := context.WithTimeout(ctx, callTimeout)
	defer stop()
	var data []byte
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			return answer{}, errors.New("the request can't be written")
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(data))
	if err != nil {
		return answer{}, withoutAddress(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	if token != "" {
		r.Header.Set("X-Acs-Dingtalk-Access-Token", token)
	}
	resp, err := l.http.Do(r)
	if err != nil {
		return answer{}, withoutAddress(err)
	}
	defer resp.Body.Close()
	a := answer{status: resp.StatusCode}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return answer{}, errors.New("the answer broke off")
	}
	if json.Unmarshal(text, &a) != nil && resp.StatusCode == http.StatusOK {
		return answer{}, errors.New("the answer is no JSON object")
	}
	return a, nil
}

func withoutAddress(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// line drops control and formatting characters, and counts characters.
func line(text string, most int) string {
	kept := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	if r := []rune(strings.TrimSpace(kept)); len(r) > most {
		return string(r[:most])
	}
	return strings.TrimSpace(kept)
}
