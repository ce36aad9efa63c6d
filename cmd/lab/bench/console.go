package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"time"

	"ebb/cmd/lab/rig"
	"ebb/memory"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/localpg"
	"ebb/sql/yardstick"
)

const (
	consoleSessions = 10_000
	consoleEvents   = 90      // in each session but the first
	consoleBusy     = 100_000 // events of the first session
	consoleFacts    = 20_000
	consoleStep     = 40 // events of a compaction
	consoleRuns     = 20 // runs of each page
	consoleLimit    = 200 * time.Millisecond

	consoleFileLimit = 5 * time.Second // a file has all rows of usage

	consoleRobot sessions.RobotCode = "console"
)

func (b *suite) measureConsole(ctx context.Context) ([]rig.Figure, error) {
	return b.onOwnServer(ctx, "console", fillConsole, nil, func(server *localpg.Server) ([]rig.Figure, error) {
		own := *b
		own.private = server
		return own.measureAllPages(ctx)
	})
}

func (b *suite) measureAllPages(ctx context.Context) (figures []rig.Figure, err error) {
	r, ctx := b.openFixture(ctx)
	defer func() { err = rig.JoinStopError(err, r.close(ctx)) }()
	g, err := r.startGateway(ctx)
	if err != nil {
		return nil, err
	}
	if err := g.enterByToken(ctx); err != nil {
		return nil, err
	}
	attempt, err := g.findAttempt(ctx)
	if err != nil {
		return nil, err
	}
	pages, err := g.measurePages(ctx, "console pages", append(consolePages(), attempt), consoleLimit)
	if err != nil {
		return nil, err
	}
	files, err := g.measurePages(ctx, "console files", []string{"/usage?format=csv", "/usage?format=csv&by=group&days=365", "/usage?format=csv&by=all&days=365"}, consoleFileLimit)
	if err != nil {
		return nil, err
	}
	lead, err := r.measureGroupAdmin(ctx)
	if err != nil {
		return nil, err
	}
	return []rig.Figure{pages, files, lead}, nil
}

// The limit is for the slowest page's p99.
func (g *gatewayProcess) measurePages(ctx context.Context, name string, paths []string, limit time.Duration) (rig.Figure, error) {
	var all, worst []time.Duration
	slowest := ""
	for _, path := range paths {
		var took []time.Duration
		for range consoleRuns {
			_, one, err := g.readPage(ctx, path)
			if err != nil {
				return rig.Figure{}, err
			}
			took = append(took, one)
		}
		if all = append(all, took...); len(worst) == 0 || rig.Quantile(took, 0.99) > rig.Quantile(worst, 0.99) {
			worst, slowest = took, path
		}
	}
	show := func(took []time.Duration) string {
		return fmt.Sprintf("p50 %s, p95 %s, p99 %s", rig.FormatMillis(rig.Median(took)), rig.FormatMillis(rig.Quantile(took, 0.95)), rig.FormatMillis(rig.Quantile(took, 0.99)))
	}
	return rig.Figure{
		Name:     fmt.Sprintf("%d %s, slowest one's p99, %d sessions, 1 M events", len(paths), name, consoleSessions),
		Measured: fmt.Sprintf("%s: %s; all: %s", slowest, show(worst), show(all)),
		Target:   "<= " + rig.FormatMillis(limit),
	}.AtMost(float64(rig.Quantile(worst, 0.99)), float64(limit)), nil
}

func (g *gatewayProcess) findAttempt(ctx context.Context) (string, error) {
	text, _, err := g.readPage(ctx, "/api/v1/compactions?limit=1")
	if err != nil {
		return "", err
	}
	var v struct {
		Items []struct {
			ID      int64  `json:"id"`
			Session string `json:"session_key"`
		} `json:"items"`
	}
	if err := json.Unmarshal(text, &v); err != nil || len(v.Items) == 0 {
		return "", fmt.Errorf("no compaction in %.300s: %w", text, cmp.Or(err, sessions.ErrNotFound))
	}
	return fmt.Sprintf("/compactions/%s/%d", url.PathEscape(v.Items[0].Session), v.Items[0].ID), nil
}

var consoleFilters = map[string][]string{
	"sessions":    {"", "group:group", "state:busy", "state:failed", "model:none", "nothing-has-this"},
	"compactions": {"", "outcome:failed", "policy:balanced", "trigger:manual", "nothing-has-this"},
	"memories":    {"", "desk", "nothing-has-this"},
}

// The filter that matches nothing reads furthest.
func consolePages() []string {
	busy := url.PathEscape(string(consoleKey(0)))
	pages := []string{
		"/", "/usage", "/people", "/people?q=console-u1", "/people?q=Nick", "/people?q=nothing-has-this", "/api/v1/usage?by=all", "/retention", "/privacy", "/sessions/" + busy + "/search?q=desk", "/restarts", "/attention", "/settings", "/audit", "/people/console-u1", "/memories/1",
		"/sessions/" + busy, "/sessions/" + url.PathEscape(string(consoleKey(7))), "/api/v1/sessions/" + busy + "/events?limit=500", "/api/v1/usage?by=session",
	}
	for list, filters := range consoleFilters {
		for _, q := range filters {
			pages = append(pages, "/"+list+"?q="+url.QueryEscape(q), "/api/v1/"+list+"?limit=500&q="+url.QueryEscape(q))
		}
	}
	slices.Sort(pages)
	return pages
}

// benchToken makes an administrator.
const benchToken = "bench-token-00001"

func (g *gatewayProcess) enterByToken(ctx context.Context) error {
	jar, _ := cookiejar.New(nil) // it has no options that could be wrong
	g.http = &http.Client{Jar: jar}
	form := url.Values{"token": {benchToken}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+g.admin+"/login", strings.NewReader(form.Encode()))
	if err != nil {
		return fmt.Errorf("logging in: %w", err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := g.http.Do(r)
	if err != nil {
		return fmt.Errorf("logging in: %w", err)
	}
	return resp.Body.Close()
}

// readPage measures until the last byte.
func (g *gatewayProcess) readPage(ctx context.Context, path string) ([]byte, time.Duration, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+g.admin+path, nil)
	if err != nil {
		return nil, 0, fmt.Errorf("reading the page %s: %w", path, err)
	}
	r.Header.Set("Authorization", "Bearer "+benchToken)
	began := time.Now()
	resp, err := cmp.Or(g.http, http.DefaultClient).Do(r)
	if err != nil {
		return nil, 0, fmt.Errorf("reading the page %s: %w", path, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != http.StatusOK || len(text) == 0) {
		err = fmt.Errorf("status %d", resp.StatusCode)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("reading the page %s: %w", path, err)
	}
	return text, time.Since(began), nil
}

func consoleKey(i int) sessions.Key {
	return sessions.NewKey(consoleRobot, sessions.ConversationID(fmt.Sprint("console-", i)), "")
}

func fillConsole(ctx context.Context, url string) error {
	if _, err := sql.Migrate(ctx, url); err != nil {
		return err
	}
	var all []sessions.Session
	for i := range consoleSessions {
		_, conversation := consoleKey(i).Conversation()
		s := sessions.Session{Key: consoleKey(i), RobotCode: consoleRobot, ConversationID: conversation, ConversationType: sessions.Group, LastSeq: consoleEvents}
		if i == 0 {
			s.LastSeq = consoleBusy
		}
		all = append(all, s)
	}
	var memories []memory.Memory
	for i := range consoleFacts {
		key := consoleKey(i % consoleSessions)
		_, conversation := key.Conversation()
		memories = append(memories, memory.Memory{
			ID: int64(i + 1), Scope: memory.ScopeGroup, ScopeID: memory.GroupID(consoleRobot, conversation), Kind: memory.KindFact,
			Content: factText(i, 0), SaidBy: consolePerson(i), SourceSession: key, SourceGroup: memory.GroupID(consoleRobot, conversation),
			StartSeq: 1, EndSeq: 1, CreatedAt: searchBegan,
		})
	}
	return withLoader(ctx, url, func(l *yardstick.Loader) error {
		if err := loadRows(ctx, l, all, memories, drawTalk(all)); err != nil {
			return err
		}
		return l.LoadHistory(ctx, consoleStep)
	})
}

func consolePerson(n int) sessions.UserID { return sessions.UserID(fmt.Sprint("console-u", n%1000)) }

func drawTalk(all []sessions.Session) func(yield func(yardstick.LoadedEvent) bool) {
	words := newSearchWorld()
	return func(yield func(yardstick.LoadedEvent) bool) {
		for i, s := range all {
			for place := int64(1); place <= s.LastSeq; place++ {
				e := sessions.Event{Seq: place, Role: sessions.RoleAssistant, Content: words.drawText(4 + words.rand.IntN(20)), Tokens: 30}
				e.CreatedAt = searchBegan.Add(time.Duration(place) * time.Minute)
				if place%2 == 1 {
					e.Role, e.SenderID = sessions.RoleUser, consolePerson(i+int(place))
					e.SenderNick = "Nick " + string(e.SenderID)
				}
				if !yield(yardstick.LoadedEvent{Key: s.Key, Event: e}) {
					return
				}
			}
		}
	}
}
