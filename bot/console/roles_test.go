package console_test

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ebb/bot/console"
)

// access is a route with the status that each role gets. A group's administrator gets own for a target in their group and foreign
// for one elsewhere; 0: the path has no target. {key}, {attempt}, {memory} and {message} are of the target.
type access struct {
	route, path                 string
	admin, viewer, own, foreign int
}

var routes = []access{
	{"GET /{$}", "/", 200, 200, 200, 0},
	{"GET /sessions", "/sessions", 200, 200, 200, 0},
	{"GET /sessions/{key}", "/sessions/{key}", 200, 200, 200, 404},
	{"GET /sessions/{key}/work", "/sessions/{key}/work", 200, 200, 200, 404},
	{"GET /compactions", "/compactions", 200, 200, 200, 0},
	{"GET /compactions/{session}/{id}", "/compactions/{key}/{attempt}", 200, 200, 200, 404},
	{"GET /memories", "/memories?q=state:all", 200, 200, 200, 0},
	{"GET /memories/{id}", "/memories/{memory}", 200, 200, 200, 404},
	{"GET /people", "/people", 200, 200, 403, 0},
	{"GET /sessions/{key}/search", "/sessions/{key}/search?q=PO-1", 200, 403, 403, 403},
	{"POST /memories/{id}/promote", "/memories/{memory}/promote", 200, 403, 403, 403},
	{"GET /people/{id}", "/people/staff0001", 200, 200, 403, 0},
	{"GET /usage", "/usage", 200, 200, 200, 0},
	{"GET /usage", "/usage?format=csv", 200, 200, 200, 0},
	{"GET /restarts", "/restarts", 200, 200, 403, 0},
	{"GET /attention", "/attention", 200, 200, 200, 0},
	{"GET /schedules", "/schedules", 200, 200, 200, 0},
	{"GET /approvals", "/approvals", 200, 200, 200, 0},
	{"POST /schedules/{key}/{id}/cancel", "/schedules/{key}/1/cancel", 200, 403, 200, 404},
	{"GET /settings", "/settings", 200, 200, 403, 0},
	{"GET /audit", "/audit", 200, 200, 200, 0},
	{"GET /privacy", "/privacy", 200, 200, 200, 0},
	{"GET /retention", "/retention", 200, 200, 403, 0},
	{"GET /people/{id}/export", "/people/staff0001/export", 200, 403, 403, 0},
	{"POST /messages/{id}/retry", "/messages/{message}/retry", 200, 403, 200, 404},
	{"POST /sessions/{key}/compact", "/sessions/{key}/compact", 200, 403, 200, 404},
	{"POST /debts/{key}/retry", "/debts/{key}/retry", 200, 403, 200, 404},
	{"POST /sessions/{key}/undo", "/sessions/{key}/undo?id={attempt}", 200, 403, 200, 404},
	{"POST /memories/{id}/forget", "/memories/{memory}/forget", 200, 403, 200, 404},
	{"POST /people/{id}/forget", "/people/staff0001/forget", 200, 403, 403, 0},
	{"/", "/nowhere", 404, 404, 404, 0},
	{"POST /logout", "/logout", 200, 200, 200, 0},
}

// openRoutes are for people without a login, and the API wants a token in each request.
var openRoutes = []string{"GET /static/", "GET /login", "POST /login", "GET /login/dingtalk", "GET CallbackPath"}

// Each route has its row in the table, so that a new one is a decision.
func TestEveryRouteHasItsRoles(t *testing.T) {
	t.Parallel()
	patterns := console.Routes()
	if len(patterns) < 25 {
		t.Errorf("only %d routes were found", len(patterns))
	}
	for _, m := range regexp.MustCompile(`mux\.Handle(?:Func)?\("([^"]*)"(\+CallbackPath)?`).FindAllStringSubmatch(sources(t), -1) {
		patterns = append(patterns, m[1]+strings.TrimPrefix(m[2], "+"))
	}
	for _, route := range patterns {
		if strings.Contains(route, "/api/") || slices.Contains(openRoutes, route) {
			continue
		}
		if !slices.ContainsFunc(routes, func(a access) bool { return a.route == route }) {
			t.Errorf("%s has no row", route)
		}
	}
}

// sources is the text of the package.
func sources(t *testing.T) (text string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text += string(b)
	}
	return text
}

// addOther adds a second group with everything that a page can show, dead letters and actions included, and texts that
// only it has.
func (w *world) addOther() {
	w.t.Helper()
	w.execute(`INSERT INTO dingtalk_sessions (session_key, robot_code, conversation_id, conversation_type, title, total_tokens, last_seq,
			compacted_seq, flushed_seq, compaction_count, model)
		VALUES ('` + otherKey + `', 'robot', 'cidOther', '2', '人事部', 2500, 4, 2, 2, 1, 'qwen')`)
	w.execute(`INSERT INTO dingtalk_session_events (session_key, seq, role, content, sender_id, sender_nick, msg_id, tokens)
		SELECT '` + otherKey + `', i, 'user', '裁员名单 ' || i, 'staff0003', '王芳', 'o' || i, 20 FROM generate_series(1, 4) i`)
	w.execute(`INSERT INTO dingtalk_session_events (session_key, role, content, sender_id, sender_nick, msg_id, tokens, state)
		VALUES ('` + otherKey + `', 'user', '裁员名单 dead', 'staff0003', '王芳', 'odead', 20, 'dead'), ('` + groupKey + `', 'user', 'PO-dead', 'staff0001', '张伟', 'gdead', 20, 'dead')`)
	w.execute(`INSERT INTO memories (scope, scope_id, kind, content, norm_hash, source_session, start_seq, end_seq, said_by, source_group)
		VALUES ('group', '` + otherKey + `', 'decision', '裁员名单已定', '\x03', '` + otherKey + `', 1, 2, 'staff0003', '` + otherKey + `'),
			('team', 'robot', 'decision', '全员周五发布', '\x04', '` + groupKey + `', 3, 4, 'staff0001', '` + groupKey + `')`)
	w.execute(`WITH s AS (INSERT INTO session_summaries (session_key, gen, start_seq, end_seq, start_msg_id, end_msg_id, msg_count, summary, tokens, model)
			VALUES ('` + otherKey + `', 0, 1, 2, 1, 2, 2, '摘要：裁员名单', 80, 'main') RETURNING id)
		INSERT INTO compaction_log (session_key, trigger, policy, mode, model, tokens_before, tokens_after, start_seq, end_seq, summary_id, flush_outcome, audit,
			outcome, view_before, cost, duration_ms)
		SELECT '` + otherKey + `', 'threshold', 'balanced', 'summary_only', 'main', 4100, 2500, 1, 2, s.id, 'done before', '{"kept": ["裁员名单"]}', 'committed',
			'{"compacted_seq": 0, "summaries": [], "pinned": ""}', 0.0123, 2100 FROM s`)
	w.addSchedule(groupKey, 1, "remind", "喝水 PO-7")
	w.addSchedule(otherKey, 1, "ask", "裁员名单 reminder")
	w.execute(`INSERT INTO flush_debts (session_key, from_seq, through_seq, failures, reason) VALUES ('` + otherKey + `', 2, 4, 1, '裁员名单 reason'), ('` + groupKey + `', 20, 40, 1, 'PO reason')`)
	w.execute(`INSERT INTO audit (session_key, actor, action, detail, outcome) VALUES ('` + otherKey + `', 'admin.token', 'undo', '裁员名单 detail', 'done'), ('` + groupKey + `', 'admin.token', 'undo', 'own detail', 'done'), ('', 'admin.token', 'forget_person', '裁员名单 person', 'done')`)
	w.execute(`INSERT INTO model_usage (session_key, day, kind, prompt_tokens, cost) VALUES ('` + otherKey + `', (now() AT TIME ZONE 'UTC')::date, 'turn', 777001, 1), ('` + groupKey + `', (now() AT TIME ZONE 'UTC')::date, 'turn', 555001, 1)`)
}

// at puts the target of a session into a path.
func (w *world) at(path, key string) string {
	w.t.Helper()
	for name, query := range map[string]string{
		"{attempt}": "SELECT min(id) FROM compaction_log WHERE session_key = '" + key + "'", "{memory}": "SELECT min(id) FROM memories WHERE source_session = '" + key + "' AND scope <> 'team'",
		"{message}": "SELECT id FROM dingtalk_session_events WHERE state = 'dead' AND session_key = '" + key + "'",
	} {
		if strings.Contains(path, name) {
			path = strings.ReplaceAll(path, name, number(scan[int64](w, query)))
		}
	}
	return strings.ReplaceAll(path, "{key}", url.PathEscape(key))
}

// foreignTexts are texts that a group's administrator must not see: another group's, a private chat's, and those without a group.
var foreignTexts = []string{"裁员", "cidOther", "人事部", "王芳", "777,001", "777001", "secret", "薪资", "cidPrivate", "悄悄话", "staff0002", "staff0003"}

// Each role gets from each route what the table says, and a refused request changes nothing and shows nothing.
func TestRoles(t *testing.T) {
	t.Parallel()
	p := open(t).invite()
	p.addOther()
	base := p.serve()
	state := func() string {
		return scan[string](p.world, `SELECT md5((SELECT string_agg(e::text, '' ORDER BY e.id) FROM dingtalk_session_events e) || (SELECT string_agg(m::text, '' ORDER BY m.id) FROM memories m)
			|| (SELECT string_agg(c::text, '' ORDER BY c.id) FROM compaction_log c) || (SELECT count(*) FROM audit))`)
	}
	admin, viewer, lead := p.enterAs(base, "boss"), p.enter(base, viewerToken), p.enterAs(base, "lead")
	stranger := p.visit(base)
	stranger.get(p.agree(stranger, "stranger", "/"))
	try := func(who string, b *browser, a access, path string, want int) {
		t.Helper()
		method, _, _ := strings.Cut(a.route, " ")
		if !strings.Contains(a.route, " ") {
			method = http.MethodGet
		}
		before := state()
		status, page := b.do(method, path, "", "Content-Type", "application/x-www-form-urlencoded")
		if status != want {
			t.Errorf("%s: %s %s is %d, want %d: %s", who, method, path, status, want, around(page, "alert"))
		}
		if want >= 400 && state() != before {
			t.Errorf("%s: %s %s changed something", who, method, path)
		}
		if b == lead {
			for _, text := range foreignTexts {
				if strings.Contains(page, text) {
					t.Errorf("%s: %s shows %s", who, path, around(page, text))
				}
			}
		}
	}
	for _, a := range routes {
		for who, b := range map[string]*browser{"no login": p.visit(base), "a stranger": stranger} {
			b.http.CheckRedirect = stay
			method, _, post := strings.Cut(a.route, " ")
			want := http.StatusSeeOther
			if post && method == http.MethodPost {
				want = http.StatusUnauthorized
			}
			try(who, b, a, p.at(a.path, otherKey), want)
		}
		if a.viewer != 200 || a.route[:3] == "GET" || a.route == "/" {
			try("the viewer", viewer, a, p.at(a.path, otherKey), a.viewer)
		}
		if a.foreign > 0 {
			try("the group's administrator elsewhere", lead, a, p.at(a.path, otherKey), a.foreign)
		}
		if a.route != "POST /logout" {
			try("the group's administrator", lead, a, p.at(a.path, groupKey), a.own)
		}
	}
	for _, path := range []string{"/sessions/" + url.PathEscape(privateKey), "/memories/" + number(scan[int64](p.world, "SELECT id FROM memories WHERE scope = 'user'"))} {
		try("the group's administrator in a private chat", lead, access{route: "GET "}, path, http.StatusNotFound)
	}
	team := number(scan[int64](p.world, "SELECT id FROM memories WHERE scope = 'team'"))
	try("the group's administrator with a fact of the team", lead, access{route: "POST "}, "/memories/"+team+"/forget", http.StatusForbidden)
	try("the group's administrator at the API", lead, access{route: "GET "}, "/api/v1/sessions", http.StatusUnauthorized)
	for _, a := range routes {
		try("the administrator", admin, a, p.at(a.path, otherKey), a.admin)
		if a.route == "POST /logout" {
			try("the viewer", viewer, a, a.path, a.viewer)
			try("the group's administrator", lead, a, a.path, a.own)
		}
	}
}

// A group's administrator finds their own group in each list, with sums of it alone.
func TestGroupAdministratorSeesTheGroup(t *testing.T) {
	t.Parallel()
	p := open(t).invite()
	p.addOther()
	b := p.enterAs(p.serve(), "lead")
	for path, want := range map[string][]string{
		"/": {"<b>1</b>", "555,001"}, "/sessions": {"支付网关发布"}, "/compactions": {"balanced"}, "/memories": {"发布日期定在"}, "/usage": {"555,001"},
		"/attention": {"PO-dead", "PO reason"}, "/audit": {"own detail"}, "/schedules": {"喝水 PO-7"}, "/schedules?q=session:" + url.QueryEscape(otherKey): {"没有符合的内容"}, "/sessions?q=" + url.QueryEscape("group:支付"): {"支付网关发布"}, "/compactions?q=session:" + url.QueryEscape(otherKey): {"没有符合的内容"},
		"/memories?q=session:" + url.QueryEscape(privateKey): {"没有符合的内容"}, "/memories?q=person:staff0002": {"没有符合的内容"},
	} {
		status, page := b.get(path)
		for _, words := range want {
			if status != http.StatusOK || !strings.Contains(page, words) {
				t.Errorf("%s: %d lacks %q", path, status, words)
			}
		}
	}
	// A private chat is no group, also with a configured id.
	p.execute("UPDATE dingtalk_sessions SET conversation_type = '1' WHERE session_key = '" + groupKey + "'")
	if _, page := b.get("/sessions"); strings.Contains(page, "支付网关发布") {
		t.Error("a private chat is shown as a group")
	}
}

// Pages of a group's administrator name people without a link to their pages, which are refused, and do not say that no replica runs.
func TestGroupAdministratorGetsNoDeadLinks(t *testing.T) {
	t.Parallel()
	p := open(t).invite()
	base := p.serve()
	admin, lead := p.enterAs(base, "boss"), p.enterAs(base, "lead")
	for _, path := range []string{"/sessions/{key}", "/compactions/{key}/{attempt}", "/memories", "/memories/{memory}"} {
		path = p.at(path, groupKey)
		if _, page := admin.get(path); !strings.Contains(page, `href="/people/staff0001"`) {
			t.Errorf("%s has no link to a person", path)
		}
		if _, page := lead.get(path); strings.Contains(page, `href="/people`) || !strings.Contains(page, "张伟") {
			t.Errorf("%s has a link to a person, or no name: %s", path, around(page, `href="/people`))
		}
	}
	if _, page := lead.get("/"); strings.Contains(page, "副本") {
		t.Errorf("the overview has a list of replicas: %s", around(page, "副本"))
	}
}

// A group's administrator deletes no memory of the team: neither by its page nor by the group's memory that it was made from, also if
// the group corrected it since.
func TestGroupAdministratorKeepsTheTeamsMemory(t *testing.T) {
	t.Parallel()
	p := open(t).invite()
	p.addOther()
	base := p.serve()
	admin, lead := p.enterAs(base, "boss"), p.enterAs(base, "lead")
	group := scan[int64](p.world, "SELECT id FROM memories WHERE source_session = '"+groupKey+"' AND scope = 'group'")
	if status, _ := admin.post("/memories/"+number(group)+"/promote", url.Values{"by": {"boss"}}); status != http.StatusOK {
		t.Fatalf("the promotion: %d", status)
	}
	state := func() string {
		return scan[string](p.world, `SELECT md5((SELECT string_agg(e::text, '' ORDER BY e.id) FROM dingtalk_session_events e) || (SELECT string_agg(m::text, '' ORDER BY m.id) FROM memories m))`)
	}
	before := state()
	lead.get("/?lang=en")
	refuse := func(id int64) {
		t.Helper()
		if status, page := lead.post("/memories/"+number(id)+"/forget", nil); status != http.StatusForbidden || !strings.Contains(page, "Only an administrator of all groups") {
			t.Errorf("memory %d: %d %s", id, status, around(page, "alert"))
		}
	}
	refuse(group)
	if state() != before {
		t.Error("a refused deletion changed something")
	}
	p.execute(`INSERT INTO memories (scope, scope_id, kind, content, norm_hash, source_session, start_seq, end_seq, said_by, source_group)
		VALUES ('group', 'robot/cidGroup', 'decision', '发布日期改到 5 月 27 日', '\x05', '` + groupKey + `', 5, 6, 'staff0001', 'robot/cidGroup')`)
	p.execute(`UPDATE memories SET superseded_by = (SELECT max(id) FROM memories), superseded_at = now() WHERE id = ` + number(group))
	before = state()
	refuse(scan[int64](p.world, "SELECT max(id) FROM memories"))
	if state() != before {
		t.Error("a refused deletion of the correction changed something")
	}
	if n := scan[int](p.world, "SELECT count(*) FROM audit WHERE action = 'forget' AND outcome = 'error.others_know'"); n != 2 {
		t.Errorf("%d refusals in the audit, want 2", n)
	}
	if status, _ := admin.post("/memories/"+number(group)+"/forget", nil); status != http.StatusOK {
		t.Errorf("the administrator of all groups: %d", status)
	}
}
