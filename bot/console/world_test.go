package console_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"ebb/bot/console"
	"ebb/bot/manage"
	"ebb/compaction"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/sqltest"
	"ebb/sql/yardstick"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("ebb/sql/localpg.(*Server).supervise"), goleak.Cleanup(sqltest.Exit))
}

// The tokens and the sessions of the tests.
const (
	adminToken  = "admin-token-0001"
	viewerToken = "viewer-token-0001"
	groupKey    = "robot/cidGroup"
	privateKey  = "robot/cidPrivate"
)

// world is a console on a database of its own.
type world struct {
	t     *testing.T
	pool  *pgxpool.Pool
	store *sql.Store
}

// open makes a database with a group of 40 events, of which a compaction covers 20, and a private chat.
func open(t *testing.T) *world {
	t.Helper()
	address := sqltest.URL(t)
	store, err := sql.Open(t.Context(), sql.Options{URL: address, MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	pool, err := pgxpool.New(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	w := &world{t: t, pool: pool, store: store}
	w.execute(`INSERT INTO dingtalk_sessions (session_key, robot_code, conversation_id, conversation_type, title, total_tokens, last_seq,
			compacted_seq, flushed_seq, compaction_count, model)
		VALUES ('` + groupKey + `', 'robot', 'cidGroup', '2', '支付网关发布', 2500, 40, 20, 20, 1, 'qwen'),
			('` + privateKey + `', 'robot', 'cidPrivate', '1', '悄悄话', 300, 4, 0, 0, 0, 'main')`)
	w.execute(`INSERT INTO dingtalk_session_events (session_key, seq, role, content, sender_id, sender_nick, msg_id, tokens)
		SELECT '` + groupKey + `', i, CASE WHEN i % 2 = 1 THEN 'user' ELSE 'assistant' END, '订单号 PO-' || i || ' 已登记',
			CASE WHEN i % 2 = 1 THEN 'staff0001' ELSE '' END, CASE WHEN i % 2 = 1 THEN '张伟' ELSE '' END,
			CASE WHEN i % 2 = 1 THEN 'g' || i END, 20 FROM generate_series(1, 40) i
		UNION ALL
		SELECT '` + privateKey + `', i, CASE WHEN i % 2 = 1 THEN 'user' ELSE 'assistant' END, '薪资问题 secretword ' || i,
			CASE WHEN i % 2 = 1 THEN 'staff0002' ELSE '' END, CASE WHEN i % 2 = 1 THEN 'secretnick' ELSE '' END,
			CASE WHEN i % 2 = 1 THEN 'p' || i END, 20 FROM generate_series(1, 4) i`)
	w.execute(`INSERT INTO memories (scope, scope_id, kind, content, norm_hash, source_session, start_seq, end_seq, said_by, source_group)
		VALUES ('group', 'robot/cidGroup', 'decision', '发布日期定在 5 月 20 日', '\x01', '` + groupKey + `', 1, 2, 'staff0001', 'robot/cidGroup'),
			('user', 'staff0002', 'preference', '想换部门 secretword', '\x02', '` + privateKey + `', 1, 2, 'staff0002', '')`)
	w.execute(`WITH s AS (INSERT INTO session_summaries (session_key, gen, start_seq, end_seq, start_msg_id, end_msg_id, msg_count, summary, tokens, model)
			VALUES ('` + groupKey + `', 0, 1, 20, 1, 20, 20, '摘要：订单号 PO-1 到 PO-20', 80, 'main') RETURNING id),
		f AS (INSERT INTO memory_flushes (session_key, trigger, from_seq, through_seq, saved)
			SELECT '` + groupKey + `', 'threshold', 0, 20, array_agg(m.id) FROM memories m WHERE m.scope = 'group' RETURNING id)
		INSERT INTO compaction_log (session_key, trigger, policy, mode, model, tokens_before, tokens_after, start_seq, end_seq, summary_id, flush_id,
			flush_outcome, audit, outcome, view_before, cost, duration_ms)
		SELECT '` + groupKey + `', 'threshold', 'balanced', 'summary_only', 'main', 4100, 2500, 1, 20, s.id, f.id, 'done before',
			'{"kept": ["PO-1", "PO-20"], "lost": []}', 'committed', '{"compacted_seq": 0, "summaries": [], "pinned": ""}', 0.0123, 2100 FROM s, f`)
	return w
}

func (w *world) execute(statement string) {
	w.t.Helper()
	if _, err := w.pool.Exec(w.t.Context(), statement); err != nil {
		w.t.Fatal(err)
	}
	if strings.Contains(statement, "dingtalk_session_events") && !strings.HasPrefix(statement, "SELECT") { // no turn noted the people
		if _, err := w.pool.Exec(w.t.Context(), "DELETE FROM people"); err != nil {
			w.t.Fatal(err)
		}
		if err := yardstick.NotePeople(w.t.Context(), w.pool); err != nil {
			w.t.Fatal(err)
		}
	}
}

// scan reads one value.
func scan[T any](w *world, query string) T {
	w.t.Helper()
	var v T
	if err := w.pool.QueryRow(w.t.Context(), query).Scan(&v); err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
	return v
}

func (w *world) operators() manage.Operators {
	s := w.store
	return manage.Operators{
		Facts: s.Facts, Sessions: s.Sessions, Erasure: s.Erasure, Compactions: s.Compactions, Requests: s.Requests, Flushes: s.Flushes,
		Letters: s.Lists, Calls: s.Calls,
	}
}

// serve starts a console, as one replica of several may. It returns its address.
func (w *world) serve(change func(*console.Config)) string {
	w.t.Helper()
	lists, reads := w.store.Pages(), w.store.ForPages()
	policy := func(s sessions.Session) compaction.Settings {
		return compaction.Settings{Enabled: !strings.Contains(s.Settings, `"enabled": false`), Window: compaction.Window{Context: 8000, Threshold: 4000, FlushRatio: 0.9}}
	}
	cfg := console.Config{
		BotName: func(code sessions.RobotCode) string { return map[sessions.RobotCode]string{"second": "财务"}[code] },
		Lists:   lists, Logins: lists, Audit: lists, Records: lists, Requests: reads.Requests, Search: reads.Search.Search, Reads: manage.New(manage.Config{Audit: lists, Rights: reads.Rights, Erasures: reads.Erasure}), Policy: policy, Location: time.UTC, Token: adminToken, ViewerToken: viewerToken, ShowCode: func(string) {}, Currency: func() string { return "" },
		Manage: manage.New(manage.Config{Rights: w.store.Rights, Erasures: w.store.Erasure, Operators: w.operators(), Schedules: w.store.Schedules, Audit: manage.Unrecorded{}, Settings: policy}),
		Privacy: func() console.Privacy {
			return console.Privacy{
				Retention: sessions.Retention{Events: 30 * 24 * time.Hour, Replies: 7 * 24 * time.Hour}, TaskTTL: 336 * time.Hour, Digest: "04:00",
				Providers: []string{"models.example.com"}, Admin: true, Viewer: true,
			}
		},
		Settings: func() ([]byte, []string, error) {
			return []byte(`{"llm": {"api_key": "***"}}`), []string{"database.url"}, nil
		},
	}
	if change != nil {
		change(&cfg)
	}
	c, err := console.New(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	s := httptest.NewServer(c)
	w.t.Cleanup(s.Close)
	return s.URL
}

// browser keeps cookies, as a person's browser does.
type browser struct {
	t    *testing.T
	base string
	http *http.Client
}

// visit opens a browser without a login.
func (w *world) visit(base string) *browser {
	w.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	transport := &http.Transport{}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &browser{w.t, base, &http.Client{Jar: jar, Transport: tlsProxy{transport}}}
}

// tlsProxy ends the TLS of a browser before the console, and adds nothing to its requests.
type tlsProxy struct{ plain *http.Transport }

// RoundTrip implements http.RoundTripper.
func (p tlsProxy) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme = "http"
	return p.plain.RoundTrip(r)
}

// enter opens a browser with a login.
func (w *world) enter(base, token string) *browser {
	w.t.Helper()
	b := w.visit(base)
	if status, _ := b.post("/login", url.Values{"token": {token}}); status != http.StatusOK {
		w.t.Fatalf("login: %d", status)
	}
	return b
}

func (b *browser) do(method, path, body string, header ...string) (int, string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.base+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := b.http.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func (b *browser) get(path string) (int, string) { b.t.Helper(); return b.do("GET", path, "") }

func (b *browser) post(path string, form url.Values) (int, string) {
	b.t.Helper()
	return b.do("POST", path, form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
}

// redirected sends a form and returns the header of the answer, whose redirect it does not follow.
func (b *browser) redirected(path string, form url.Values) http.Header {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), "POST", b.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	first := *b.http
	first.CheckRedirect = stay
	resp, err := first.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusSeeOther {
		b.t.Errorf("%s is %d, want a redirect", path, resp.StatusCode)
	}
	return resp.Header
}

// paths are all pages of the world.
func (w *world) paths() []string {
	w.t.Helper()
	attempt := scan[int64](w, "SELECT id FROM compaction_log LIMIT 1")
	memories := []int64{scan[int64](w, "SELECT min(id) FROM memories"), scan[int64](w, "SELECT max(id) FROM memories")}
	paths := []string{
		"/", "/sessions", "/compactions", "/memories", "/memories?q=state:all", "/usage", "/restarts", "/attention", "/settings", "/audit",
		"/privacy", "/retention", "/retention?days=1", "/people", "/people?q=staff0001",
		"/sessions/" + url.PathEscape(groupKey), "/sessions/" + url.PathEscape(privateKey), "/people/staff0001", "/people/staff0002",
		"/compactions/" + url.PathEscape(groupKey) + "/" + number(attempt),
	}
	for _, id := range memories {
		paths = append(paths, "/memories/"+number(id))
	}
	return paths
}
