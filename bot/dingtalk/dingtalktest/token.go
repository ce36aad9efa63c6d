package dingtalktest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

type token struct {
	value   string
	app     *app
	expires time.Time
	revoked bool
}

// fetchTokenLocked gives out an application's token: the same one, renewed, while it is valid.
func (s *Server) fetchTokenLocked(a *app) *token {
	now := s.nowLocked()
	a.tokenFetches++
	excused := a.tokenExcuses > 0
	a.tokenExcuses = max(a.tokenExcuses-1, 0)
	for _, t := range s.tokens {
		if t.app != a || t.revoked || now.After(t.expires) {
			continue
		}
		left := t.expires.Sub(now)
		if !excused && left > s.opts.TokenTTL/4 {
			s.violateLocked(Violation{Kind: TokenWasted, Detail: fmt.Sprintf("%s fetched a token while its last had %s to live", a.ClientID, left.Round(time.Second))})
		}
		t.expires = now.Add(s.opts.TokenTTL)
		return t
	}
	t := &token{value: randomHex(16), app: a, expires: now.Add(s.opts.TokenTTL)}
	s.tokens[t.value] = t
	return t
}

func (s *Server) accessToken(c *call) response {
	var q struct {
		AppKey    string `json:"appKey"`
		AppSecret string `json:"appSecret"`
	}
	_ = json.Unmarshal(c.body, &q) // an unreadable body has no credentials
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.appByClientLocked(q.AppKey)
	if a == nil || a.ClientSecret != q.AppSecret {
		return apiError(http.StatusBadRequest, "invalidClientIdOrSecret", "无效的clientId或者clientSecret")
	}
	return jsonResponse(map[string]any{"accessToken": s.fetchTokenLocked(a).value, "expireIn": int(s.opts.TokenTTL.Seconds())})
}

func (s *Server) getToken(c *call) response {
	q := c.r.URL.Query()
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.appByClientLocked(q.Get("appkey"))
	if a == nil || a.ClientSecret != q.Get("appsecret") {
		return hookError(40089, "不合法的corpid或corpsecret")
	}
	return jsonResponse(map[string]any{
		"errcode": 0, "errmsg": "ok", "access_token": s.fetchTokenLocked(a).value, "expires_in": int(s.opts.TokenTTL.Seconds()),
	})
}

// RevokeTokens ends every access token before its time; the next call with one is refused.
func (s *Server) RevokeTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tokens {
		t.revoked = true
		t.app.tokenExcuses++
	}
	s.noteLocked(Entry{Kind: "fault", Detail: "access tokens revoked"})
}

func (s *Server) tokenLocked(value string) *token {
	t := s.tokens[value]
	if t == nil {
		return nil
	}
	if t.revoked || s.nowLocked().After(t.expires) {
		t.app.tokenExcuses++
		return nil
	}
	return t
}

// api wraps a route of the open API with the token, the rate limit and the monthly budget.
func (s *Server) api(f func(*call) response) func(*call) response {
	return func(c *call) response {
		s.mu.Lock()
		defer s.mu.Unlock()
		t := s.tokenLocked(c.r.Header.Get("x-acs-dingtalk-access-token"))
		if t == nil {
			return apiError(http.StatusBadRequest, "InvalidAuthentication", "不合法的access_token")
		}
		c.app = t.app
		if r, limited := s.apiLimitLocked(c); limited {
			return r
		}
		return f(c) // with s.mu held
	}
}

func (s *Server) apiLimitLocked(c *call) (response, bool) {
	name := "api " + c.app.ClientID + " " + c.route
	if n := s.opts.APIQPS; n > 0 && s.rateLocked(name, time.Second) > n {
		s.forgetLastLocked(name) // refused calls do not count
		return apiError(http.StatusForbidden, "Forbidden.AccessDenied.QpsLimitForAppkeyAndApi", "too many calls of this API by this application"), true
	}
	c.app.apiCalls++
	if s.opts.EnforceQuotas && c.app.apiCalls > s.opts.APIQuota {
		return apiError(http.StatusForbidden, "Forbidden.AccessDenied.ApiCountLimitForOrg", "the monthly quota is used up"), true
	}
	return response{}, false
}
