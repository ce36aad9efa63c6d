// Package openapi calls DingTalk's open API with an access token, each call counted against the month.
package openapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/calls"
	"ebb/bot/dingtalk/request"
)

// App is the application and the addresses of its APIs. All fields are required.
type App struct {
	ClientID string
	Secret   request.Secret
	APIBase  string // without a slash at the end
	OAPIBase string // address of the old API, likewise
}

// Client makes the calls of an application.
type Client struct {
	app      App
	requests *request.Client
	governor *calls.Governor
	tokens   *tokens
	fetched  atomic.Int64
}

// New returns a client. governor counts its calls.
func New(app App, requests *request.Client, governor *calls.Governor) *Client {
	c := &Client{app: app, requests: requests, governor: governor}
	c.tokens = newTokens(c.FetchToken)
	return c
}

// TokensFetched is the number of access tokens that DingTalk gave.
func (c *Client) TokensFetched() int64 { return c.fetched.Load() }

// Call is one counted call.
type Call struct {
	API    calls.API
	Need   calls.Need
	Method string
	Path   string
	Doing  string // named in errors
	// Reserved counts the first attempt; nil: not counted yet.
	Reserved *calls.Reservation
	Within   time.Duration // for the request; 0: that of all requests
	Old      bool          // a call of the old API, which has the token in the address: Path ends with a query
	Body     any           // JSON, or a [files.Form]
}

// Do makes a call and renews a refused token once. Each attempt is counted before it is made.
func (c *Client) Do(ctx context.Context, call Call) (request.Answer, *chat.SendError) {
	for try := 0; ; try++ {
		token, err := c.tokens.tokenInForce(ctx)
		if err != nil {
			if call.Reserved != nil {
				c.GiveBack(ctx, *call.Reserved, call.API)
			}
			failed := &chat.SendError{Silent: request.IsSilence(err), Err: fmt.Errorf("%s: %w", call.Doing, err)}
			if errors.Is(err, ErrCredentials) {
				failed.After, failed.Account = request.WaitToken, true
			}
			return request.Answer{}, failed
		}
		counted, failed := c.reserveCall(ctx, call)
		call.Reserved = nil
		if failed != nil {
			return request.Answer{}, failed
		}
		one, stop := withTimeout(ctx, call.Within)
		address, header := c.app.APIBase+call.Path, http.Header{"X-Acs-Dingtalk-Access-Token": {token}}
		if call.Old {
			address, header = c.app.OAPIBase+call.Path+"&access_token="+url.QueryEscape(token), nil
		}
		a, err := c.requests.Send(one, call.Method, address, header, call.Body)
		stop()
		if err != nil {
			if errors.Is(err, request.ErrUnsent) {
				c.GiveBack(ctx, counted, call.API)
			}
			return request.Answer{}, request.Lost(call.Doing, err)
		}
		if a.Status == http.StatusOK && a.Body.Str("errcode", "code") == "" {
			a.Token = token
			return a, nil
		}
		switch a.Class() {
		case request.Busy:
			c.governor.Pause(call.API, request.WaitBusy)
			c.GiveBack(ctx, counted, call.API)
		case request.Exhausted:
			if err := c.governor.Exhaust(ctx, request.WaitExhausted); err != nil {
				zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to store that DingTalk refuses API calls")
			}
		case request.BadToken:
			if try == 0 {
				c.tokens.dropToken(ctx, token)
				continue
			}
		}
		a.Token = token
		return a, nil
	}
}

func (c *Client) reserveCall(ctx context.Context, call Call) (calls.Reservation, *chat.SendError) {
	var counted calls.Reservation
	var err error
	if call.Reserved != nil {
		counted = *call.Reserved
	} else {
		counted, err = c.governor.Reserve(ctx, call.Need, call.API)
	}
	if refused, ok := errors.AsType[*calls.RefusedError](err); ok {
		return counted, &chat.SendError{After: min(refused.After, request.WaitExhausted), Err: fmt.Errorf("%s: %w", call.Doing, err)}
	}
	if err != nil {
		return counted, &chat.SendError{Err: fmt.Errorf("%s: %w", call.Doing, err)}
	}
	if err := c.governor.Wait(ctx, call.API); err != nil {
		c.GiveBack(ctx, counted, call.API)
		return counted, &chat.SendError{After: time.Second, Err: fmt.Errorf("%s: %w", call.Doing, err)}
	}
	return counted, nil
}

// GiveBack returns a call that DingTalk did not count, also after the end of ctx.
func (c *Client) GiveBack(ctx context.Context, counted calls.Reservation, api calls.API) {
	one, stop := context.WithTimeout(context.WithoutCancel(ctx), c.requests.Timeout)
	defer stop()
	if err := counted.Return(one, api); err != nil {
		zerolog.Ctx(ctx).Debug().Err(err).Msg("Failed to return a counted API call")
	}
}

func withTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d > 0 {
		return context.WithTimeout(ctx, d)
	}
	return ctx, func() {}
}

// FetchToken requests an access token, bypassing the cache. Its error names no secret.
func (c *Client) FetchToken(ctx context.Context) (string, time.Duration, error) {
	a, err := c.requests.Post(ctx, c.app.APIBase+"/v1.0/oauth2/accessToken", nil,
		map[string]string{"appKey": c.app.ClientID, "appSecret": string(c.app.Secret)})
	if err != nil {
		return "", 0, fmt.Errorf("asking for an access token: %w", err)
	}
	token := a.Body.Str("accessToken", "access_token")
	if a.Status == http.StatusOK && token != "" {
		c.fetched.Add(1)
		seconds, err := strconv.ParseFloat(a.Body.Str("expireIn", "expires_in"), 64)
		if err != nil || seconds < 1 || seconds > 1e6 {
			seconds = 7200
		}
		return token, time.Duration(seconds * float64(time.Second)), nil
	}
	if a.Status == http.StatusBadRequest || a.Status == http.StatusUnauthorized {
		return "", 0, fmt.Errorf("asking for an access token: %w (%s)", ErrCredentials, c.app.Secret.Words(a))
	}
	return "", 0, fmt.Errorf("asking for an access token: status %d: %s", a.Status, c.app.Secret.Words(a))
}

// AccessToken returns the application's token, for requests of other packages. Its error names no secret.
func (c *Client) AccessToken(ctx context.Context) (string, error) {
	return c.tokens.tokenInForce(ctx)
}

// RejectToken forgets a token that DingTalk refused.
func (c *Client) RejectToken(ctx context.Context, token string) { c.tokens.dropToken(ctx, token) }
