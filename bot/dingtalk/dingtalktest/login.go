package dingtalktest

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// The permissions of the calls of a login.
const (
	PermissionContact = "Contact.User.Read" // GET /v1.0/contact/users/me
	PermissionMember  = "qyapi_get_member"  // POST /topapi/user/getbyunionid
)

type logins struct {
	*core
	*people
	*openAPI
	codes      map[string]*loginCode
	userTokens map[string]*userToken
}

type loginCode struct {
	app     *app
	person  string
	corp    bool // the scope has corpid
	expires time.Time
	used    bool
}

type userToken struct {
	app     *app
	person  string
	expires time.Time
}

// AddRedirect registers a target of the first application's logins.
func (s *logins) AddRedirect(uri string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.apps[0].RedirectURIs = append(s.apps[0].RedirectURIs, uri)
}

// DingTalk shows its own faults to the person and does not lead back then.
func page(status int, body string) response {
	return response{status: status, contentType: "text/html; charset=utf-8", raw: []byte("<!doctype html><title>DingTalk</title>" + body)}
}

// authorize is the page on which a person agrees to a login: the one whose staff id is the address's "person", or any
// of the known people.
func (s *logins) authorize(c *call) response {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := c.r.URL.Query()
	a := s.appByClientLocked(q.Get("client_id"))
	scopes := strings.Fields(q.Get("scope"))
	switch {
	case a == nil:
		return page(http.StatusBadRequest, "<p>client_id is of no application</p>")
	case !slices.Contains(a.RedirectURIs, q.Get("redirect_uri")):
		return page(http.StatusBadRequest, "<p>redirect_uri is not registered</p>")
	case q.Get("response_type") != "code":
		return page(http.StatusBadRequest, "<p>response_type must be code</p>")
	case !slices.Contains(scopes, "openid"):
		return page(http.StatusBadRequest, "<p>scope must have openid</p>")
	case q.Get("prompt") != "consent":
		return page(http.StatusBadRequest, "<p>prompt must be consent</p>")
	}
	u := s.users[q.Get("person")]
	switch {
	case q.Get("person") == "":
		return page(http.StatusOK, s.choicesLocked(c.r.URL))
	case u == nil || u.External:
		return page(http.StatusForbidden, "<p>only members of the application's organisation may log in</p>")
	}
	code := randomHex(16)
	s.codes[code] = &loginCode{app: a, person: u.StaffID, corp: slices.Contains(scopes, "corpid"), expires: s.nowLocked().Add(s.opts.LoginCodeTTL)}
	to, err := url.Parse(q.Get("redirect_uri"))
	if err != nil {
		return page(http.StatusBadRequest, "<p>redirect_uri is no address</p>")
	}
	back := to.Query()
	back.Set("authCode", code)
	if q.Has("state") {
		back.Set("state", q.Get("state"))
	}
	to.RawQuery = back.Encode()
	return response{status: http.StatusFound, header: map[string]string{"Location": to.String()}, contentType: "text/html"}
}

func (s *logins) choicesLocked(at *url.URL) string {
	var b strings.Builder
	b.WriteString("<h1>DingTalk simulator: log in as</h1><ul>")
	ids := make([]string, 0, len(s.users))
	for id, u := range s.users {
		if !u.External {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		q := at.Query()
		q.Set("person", id)
		fmt.Fprintf(&b, `<li><a href="?%s">%s</a></li>`, html.EscapeString(q.Encode()), html.EscapeString(s.users[id].Nick))
	}
	return b.String() + "</ul>"
}

func (s *logins) userToken(c *call) response {
	var q struct {
		ClientID     string `json:"clientId"`
		ClientSecret string `json:"clientSecret"`
		Code         string `json:"code"`
		GrantType    string `json:"grantType"`
	}
	if json.Unmarshal(c.body, &q) != nil {
		return *badParam("invalidParameter", "the body cannot be read")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.appByClientLocked(q.ClientID)
	if a == nil || a.ClientSecret != q.ClientSecret {
		return apiError(http.StatusBadRequest, "invalidClientIdOrSecret", "无效的clientId或者clientSecret")
	}
	if q.GrantType != "authorization_code" {
		return *badParam("invalidParameter.grantType", "grantType must be authorization_code")
	}
	code := s.codes[q.Code]
	if code == nil || code.app != a || code.used || s.nowLocked().After(code.expires) {
		return *badParam("invalidParameter.authCode.notFound", "不存在的临时授权码")
	}
	code.used = true
	token := randomHex(16)
	s.userTokens[token] = &userToken{app: a, person: code.person, expires: s.nowLocked().Add(s.opts.TokenTTL)}
	answer := map[string]any{"accessToken": token, "refreshToken": randomHex(16), "expireIn": int(s.opts.TokenTTL.Seconds())}
	if code.corp {
		answer["corpId"] = a.CorpID
	}
	return jsonResponse(answer)
}

// me leaves out the staff id.
func (s *logins) me(c *call) response {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.userTokens[c.r.Header.Get("x-acs-dingtalk-access-token")]
	switch {
	case t == nil || s.nowLocked().After(t.expires):
		return apiError(http.StatusBadRequest, "InvalidAuthentication", "不合法的access_token")
	case slices.Contains(t.app.Lacks, PermissionContact):
		return lacking(PermissionContact)
	}
	u := s.userLocked(t.person)
	return jsonResponse(map[string]string{"nick": u.Nick, "unionId": u.UnionID, "openId": "open" + u.StaffID, "avatarUrl": "", "stateCode": "86"})
}

func lacking(permission string) response {
	r := jsonResponse(map[string]any{
		"code": "Forbidden.AccessDenied.AccessTokenPermissionDenied", "requestid": newUUID(), "message": "应用尚未开通所需的权限",
		"accessdenieddetail": map[string]any{"requiredScopes": []string{permission}},
	})
	r.status = http.StatusForbidden
	return r
}

func (s *logins) userByUnionID(c *call) response {
	var q struct {
		UnionID string `json:"unionid"`
	}
	_ = json.Unmarshal(c.body, &q) // an unreadable body has no union id
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tokenLocked(c.r.URL.Query().Get("access_token"))
	switch {
	case t == nil:
		return hookError(40014, "不合法的access_token")
	case slices.Contains(t.app.Lacks, PermissionMember):
		return jsonResponse(map[string]any{
			"errcode": 88, "sub_code": "60011", "sub_msg": "应用尚未开通所需的权限：[qyapi_get_member]", "errmsg": "ding talk error[subcode=60011]",
		})
	case q.UnionID == "":
		return hookError(40035, "缺少参数 unionid")
	}
	for _, u := range s.users {
		if u.UnionID == q.UnionID {
			kind := 0
			if u.External {
				kind = 1
			}
			return jsonResponse(map[string]any{
				"errcode": 0, "errmsg": "ok", "request_id": newUUID(), "result": map[string]any{"contact_type": kind, "userid": u.StaffID},
			})
		}
	}
	return hookError(60121, "找不到该用户")
}
