package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"

	"ebb/bot/console"
	"ebb/cmd/lab/rig"
)

const (
	// consoleLead administers the first groups, and nothing else.
	consoleLead   = "console-lead"
	consoleGroups = 1000
	// consoleOrigin is where DingTalk leads back to. Requests go to the gateway itself, so that its cookies are for no TLS.
	consoleOrigin = "http://localhost"
)

func (r *fixture) measureGroupAdmin(ctx context.Context) (rig.Figure, error) {
	r.dingtalk.AddRedirect(consoleOrigin + console.CallbackPath)
	r.change = func(c map[string]any) {
		groups := map[string]any{}
		for i := range consoleGroups {
			_, conversation := consoleKey(i).Conversation()
			groups[string(conversation)] = map[string]any{"admins": []string{consoleLead}}
		}
		c["groups"] = groups
		c["admin"] = map[string]any{"listen": "127.0.0.1:0", "dingtalk_login": map[string]any{
			"redirect_uri": consoleOrigin + console.CallbackPath, "authorize_url": r.dingtalk.URL + "/oauth2/auth",
		}}
	}
	g, err := r.startGateway(ctx)
	if err != nil {
		return rig.Figure{}, err
	}
	if err := g.enterAs(ctx, consoleLead); err != nil {
		return rig.Figure{}, fmt.Errorf("logging in as an administrator of groups: %w", err)
	}
	busy := url.PathEscape(string(consoleKey(0)))
	pages := []string{
		"/", "/usage", "/usage?format=csv", "/privacy", "/attention", "/audit", "/memories/1", "/sessions/" + busy, "/sessions/" + busy + "/work",
		"/sessions/" + url.PathEscape(string(consoleKey(7))),
	}
	for list, filters := range consoleFilters {
		for _, q := range filters {
			pages = append(pages, "/"+list+"?q="+url.QueryEscape(q))
		}
	}
	return g.measurePages(ctx, fmt.Sprintf("console pages of an administrator of %d groups", consoleGroups), pages, consoleLimit)
}

func (g *gatewayProcess) enterAs(ctx context.Context, person string) error {
	jar, _ := cookiejar.New(nil) // it has no options that could be wrong
	g.http = &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	consent, err := g.follow(ctx, "http://"+g.admin+"/login/dingtalk?next=/")
	if err != nil {
		return err
	}
	back, err := g.follow(ctx, consent.String()+"&person="+url.QueryEscape(person))
	if err != nil {
		return err
	}
	_, _, err = g.readPage(ctx, back.RequestURI())
	return err
}

func (g *gatewayProcess) follow(ctx context.Context, address string) (_ *url.URL, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("reading the page %s: %w", address, err)
	}
	resp, err := g.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("reading the page %s: %w", address, err)
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	return resp.Location()
}
