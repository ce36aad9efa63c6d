package console_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"ebb/bot/console"
	"ebb/memory/pages"
)

// Usage is shown by person and model, and exported with each division, turns included. Names are no formulas in a spreadsheet.
func TestUsageByPersonAndModel(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.execute(`UPDATE dingtalk_session_events SET sender_nick = '=HYPERLINK(1)' WHERE sender_id = 'staff0001'`)
	w.execute(`INSERT INTO model_usage (session_key, day, kind, model, person, prompt_tokens, completion_tokens, cost, turns)
		VALUES ('` + groupKey + `', (now() AT TIME ZONE 'UTC')::date, 'turn', 'qwen', 'staff0001', 1234, 5, 0.5, 4321),
			('` + groupKey + `', (now() AT TIME ZONE 'UTC')::date, 'flush', 'small', '', 10, 1, 0.1, 0),
			('` + groupKey + `', (now() AT TIME ZONE 'UTC')::date - 1, 'turn', '', '', 1234, 0, 0.5, 4321)`)
	b := w.enter(w.serve(nil), adminToken)
	_, page := b.get("/usage?lang=en")
	for _, want := range []string{`<a href="/people/staff0001">=HYPERLINK(1)</a>`, "1,234", ">qwen<", ">small<", "no person"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	viewer := w.enter(b.base, viewerToken)
	for _, path := range []string{"/usage", "/usage?format=csv&by=person"} {
		if _, page := viewer.get(path); strings.Contains(page, "HYPERLINK") || !strings.Contains(page, "staff0001") {
			t.Errorf("%s names people for a viewer, or leaves them out", path)
		}
	}
	for by, want := range map[string]string{
		"person": "\n,,,,,staff0001,'=HYPERLINK(1),1234,0,5,0.5,4321\n", "model": "\n,,,,small,,,10,0,1,0.1,0\n", "group": "\n,robot/cidGroup,支付网关发布,,,staff0001,",
		"all": ",robot/cidGroup,支付网关发布,turn,qwen,staff0001,'=HYPERLINK(1),1234,0,5,0.5,4321\n",
	} {
		if status, text := b.get("/usage?format=csv&by=" + by); status != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("the export by %s: %d %q, want %q", by, status, text, want)
		}
	}
	const cell = `data-label="Turns">`
	for path, want := range map[string][]string{"/": {cell + "4,321<", cell + "8,642<"}, "/usage": {cell + "4,321<", cell + "8,642<", cell + "–<"}} {
		_, page := b.get(path + "?lang=en")
		for _, turns := range want {
			if !strings.Contains(page, turns) {
				t.Errorf("%s has no %s: %s", path, turns, around(page, cell))
			}
		}
	}
	if _, text := b.get("/usage?format=csv"); !strings.Contains(text, "\nrobot/cidGroup,2478,0,6,1.1,8642\n") {
		t.Errorf("the export by sessions is %q", text)
	}
	for by, want := range map[string]string{"session": `"turns":8642`, "person": `"turns":4321`} {
		if _, text := b.do("GET", "/api/v1/usage?by="+by, "", "Authorization", "Bearer "+adminToken); !strings.Contains(text, want) {
			t.Errorf("the API by %s has no %s: %s", by, want, text)
		}
	}
	if status, _ := b.get("/usage?format=csv&by=nick"); status != http.StatusBadRequest {
		t.Errorf("an unknown division: %d", status)
	}
}

// A person is named by the newest message that has a name: some transports leave it out.
func TestUsageNamesPeopleOfNamelessMessages(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.execute(`INSERT INTO dingtalk_session_events (session_key, seq, role, content, sender_id, sender_nick, msg_id)
		VALUES ('` + groupKey + `', 41, 'user', 'x', 'staff0001', '', 'nameless')`)
	w.execute(`INSERT INTO model_usage (session_key, day, kind, model, person, prompt_tokens)
		VALUES ('` + groupKey + `', (now() AT TIME ZONE 'UTC')::date, 'turn', 'qwen', 'staff0001', 1234)`)
	b := w.enter(w.serve(nil), adminToken)
	for _, path := range []string{"/usage", "/people", "/people?q=staff0001"} {
		if _, page := b.get(path); !strings.Contains(page, `<a href="/people/staff0001">张伟</a>`) {
			t.Errorf("%s does not name the person: %s", path, around(page, "staff0001"))
		}
	}
	for _, by := range []string{"person", "all"} {
		if _, text := b.get("/usage?format=csv&by=" + by); !strings.Contains(text, "staff0001,张伟,") {
			t.Errorf("the export by %s does not name the person: %s", by, text)
		}
	}
}

// A file has each row once, however many there are. The page names what its tables leave out, and groups by their titles.
func TestUsageOfManyPeople(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.execute(`INSERT INTO model_usage (session_key, day, kind, model, person, prompt_tokens, cost)
		SELECT CASE WHEN i % 2 = 1 THEN '` + groupKey + `' ELSE 'robot/s' || i % 7 END, (now() AT TIME ZONE 'UTC')::date - i % 3, 'turn', 'm' || CASE WHEN i < 2600 THEN i % 60 ELSE i END,
			CASE WHEN i < 2600 THEN 'p' || i ELSE '' END, 1, i FROM generate_series(1, 2700) i`)
	b := w.enter(w.serve(nil), adminToken)
	for by, want := range map[string]string{
		"all":    "SELECT count(*) FROM model_usage",
		"group":  "SELECT count(*) FROM (SELECT DISTINCT session_key, person FROM model_usage) u",
		"person": "SELECT count(DISTINCT person) FROM model_usage",
		"model":  "SELECT count(DISTINCT model) FROM model_usage",
		"day":    "SELECT count(DISTINCT day) FROM model_usage",
	} {
		_, text := b.get("/usage?format=csv&by=" + by)
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil || len(rows) < 2 {
			t.Fatalf("the export by %s: %v %.300s", by, err, text)
		}
		seen, tokens := map[string]bool{}, 0
		for _, row := range rows[1:] {
			seen[strings.Join(row[:7], ",")] = true
			n, err := strconv.Atoi(row[7])
			if err != nil {
				t.Fatal(err)
			}
			tokens += n
		}
		if n := scan[int](w, want); len(rows)-1 != n || len(seen) != n || tokens != 2700 {
			t.Errorf("the export by %s has %d rows, %d of them different, with %d tokens, want %d rows with 2700", by, len(rows)-1, len(seen), tokens, n)
		}
	}
	_, page := b.get("/usage?lang=en")
	for _, want := range []string{
		`The 50 most expensive are shown; <a href="?days=30&amp;format=csv&amp;by=person">the CSV</a> has all.`,
		`<a href="?days=30&amp;format=csv&amp;by=model">`, `<a href="/sessions/` + url.PathEscape(groupKey) + `">支付网关发布</a>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	w.execute("DELETE FROM model_usage WHERE cost > 3")
	if _, page := b.get("/usage?lang=en"); strings.Contains(page, "most expensive") {
		t.Error("the page says that it leaves out rows where it shows all")
	}
}

// brokenUsage fails to read usage after its first rows.
type brokenUsage struct {
	pages.Records
	rows int
}

func (b brokenUsage) UsageRows(ctx context.Context, since time.Time, by pages.UsageBy) iter.Seq2[pages.Usage, error] {
	return func(yield func(pages.Usage, error) bool) {
		for range b.rows {
			if !yield(pages.Usage{Key: groupKey}, nil) {
				return
			}
		}
		yield(pages.Usage{}, errBroken)
	}
}

// A file of usage that fails after its first row breaks the connection, and one that fails before is an error page.
func TestBrokenExportOfUsage(t *testing.T) {
	t.Parallel()
	w := open(t)
	for _, rows := range []int{0, 1, 1000} {
		b := w.enter(w.serve(func(c *console.Config) { c.Records = brokenUsage{c.Records, rows} }), adminToken)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.base+"/usage?format=csv&by=all", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := b.http.Do(r)
		if err != nil {
			if rows == 0 {
				t.Errorf("an export without a row: %v", err)
			}
			continue
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		switch {
		case rows > 0 && err == nil:
			t.Errorf("a part of %d rows looks whole: %d %.300s", rows, resp.StatusCode, text)
		case rows == 0 && (err != nil || resp.StatusCode != http.StatusInternalServerError || resp.Header.Get("Content-Disposition") != "" || strings.Contains(string(text), "secret")):
			t.Errorf("an export without a row: %d %v %v %.300s", resp.StatusCode, resp.Header, err, text)
		}
	}
}

// Usage of models without a price has no cost: a dash on the pages with its reason, and an empty cell in a file.
func TestUsageWithoutAPrice(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.execute("UPDATE compaction_log SET cost = 0")
	w.execute(`INSERT INTO model_usage (session_key, day, kind, model, person, prompt_tokens, completion_tokens, turns)
		VALUES ('` + groupKey + `', (now() AT TIME ZONE 'UTC')::date, 'turn', 'qwen', 'staff0001', 1234, 5, 3)`)
	b := w.enter(w.serve(nil), adminToken)
	const reason = "No price is configured"
	for _, path := range []string{"/", "/usage", "/compactions", w.at("/compactions/{key}/{attempt}", groupKey)} {
		_, page := b.get(path + "?lang=en")
		if strings.Contains(page, "0.0000") || !strings.Contains(page, `no price is configured for it">–</span>`) {
			t.Errorf("%s has a cost, or no dash: %s", path, around(page, "0.0000"))
		}
		if isSum := path == "/" || path == "/usage"; isSum != strings.Contains(page, reason) {
			t.Errorf("%s has the reason for no cost: %t", path, !isSum)
		}
	}
	for by, want := range map[string]string{"": "robot/cidGroup,1234,0,5,,3\n", "&by=person": "staff0001,张伟,1234,0,5,,3\n"} {
		if _, text := b.get("/usage?format=csv" + by); !strings.Contains(text, want) {
			t.Errorf("the file %q is %q, want %q", by, text, want)
		}
	}
	w.execute("UPDATE model_usage SET cost = 0.00002")
	if _, page := b.get("/usage?lang=en"); strings.Contains(page, reason) || !strings.Contains(page, "&lt; 0.0001<") {
		t.Errorf("a small cost is shown as none: %s", around(page, "0.0"))
	}
}

// Every cost on a page names its currency.
func TestPagesNameTheCurrency(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.execute("UPDATE compaction_log SET cost = 0.5")
	w.execute(`INSERT INTO model_usage (session_key, day, kind, model, person, prompt_tokens, cost, turns)
		VALUES ('` + groupKey + `', (now() AT TIME ZONE 'UTC')::date, 'turn', 'qwen', 'staff0001', 1234, 0.25, 3)`)
	b := w.enter(w.serve(func(c *console.Config) { c.Currency = func() string { return "CNY" } }), adminToken)
	costs := regexp.MustCompile(`>(?:&lt; )?\d+\.\d{4}[^<]*<`)
	for _, path := range []string{"/", "/usage", "/compactions", w.at("/compactions/{key}/{attempt}", groupKey)} {
		_, page := b.get(path)
		shown := costs.FindAllString(page, -1)
		if len(shown) == 0 {
			t.Errorf("%s has no cost", path)
		}
		for _, cost := range shown {
			if !strings.HasSuffix(cost, " CNY<") {
				t.Errorf("%s has a cost without a currency: %s", path, cost)
			}
		}
	}
}

// A page has one clock, that of the configured zone, and names it. A reminder that repeats by the clock of another zone names that one. A day of usage, which is one of UTC, begins at a time of that clock.
func TestPagesHaveOneClock(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.execute(`INSERT INTO model_usage (session_key, day, kind, prompt_tokens, turns) VALUES ('` + groupKey + `', (now() AT TIME ZONE 'UTC')::date, 'turn', 1234, 3)`)
	w.addSchedule(groupKey, 1, "remind", "喝水")
	w.addSchedule(groupKey, 2, "remind", "起来走走")
	w.execute("UPDATE schedules SET spec = 'every 30m from 2026-11-23T14:30:00+08:00 Asia/Shanghai' WHERE id = 2")
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		zone        *time.Location
		name, begin string
		repeats     string // zone of a reminder's words
	}{
		{shanghai, "Asia/Shanghai (UTC+08:00)", "08:00", ""}, {time.UTC, "UTC", "00:00", " · Asia/Shanghai (UTC+08:00)"},
		{time.FixedZone("Local", -3*3600), "UTC-03:00", "21:00", " · Asia/Shanghai (UTC+08:00)"},
	} {
		b := w.enter(w.serve(func(cfg *console.Config) { cfg.Location = c.zone }), adminToken)
		for path, want := range map[string]string{
			"/schedules": "every Friday at 09:00" + c.repeats + "</div>",
			"/":          time.Now().UTC().Truncate(24*time.Hour).In(c.zone).Format("Today (since 2006-01-02 ") + c.begin + ")", "/usage": "Day (of UTC, from " + c.begin + ")", "/audit": "",
		} {
			_, page := b.get(path + "?lang=en")
			page = strings.ReplaceAll(page, "&#43;", "+")
			if !strings.Contains(page, want) || !strings.Contains(page, "All times are in "+c.name+"<") {
				t.Errorf("%s in %s lacks %q or its zone: %s", path, c.name, want, around(page, "Today", "Day (", "every Friday", "All times"))
			}
			if path == "/schedules" && !strings.Contains(page, "every 30 minutes</div>") {
				t.Errorf("an interval of minutes in %s has a zone: %s", c.name, around(page, "every 30"))
			}
		}
	}
}

// Several bots have sums of their own, by their names: in the page, in the API as pages, and their calls in the overview. An only bot has no table
// of one row.
func TestUsageAndCallsOfBots(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.execute("DELETE FROM model_usage")
	w.execute(`INSERT INTO model_usage (session_key, day, kind, model, person, turns, prompt_tokens, cost)
		SELECT v.key, (now() AT TIME ZONE 'UTC')::date, 'turn', 'm', 'p', 1, v.tokens, v.tokens FROM (VALUES ('first/c1', 1000), ('first/c2', 500), ('second/c1', 7)) v (key, tokens)`)
	calls := []console.BotCalls{{Name: "小甲", Made: 4211, Quota: 5000}, {Name: "财务", Made: 12}}
	b := w.enter(w.serve(func(c *console.Config) { c.Calls = func() []console.BotCalls { return calls } }), adminToken)
	_, page := b.get("/usage?lang=zh")
	for _, want := range []string{"按机器人", `<th scope="row">first</th>`, "1,500", `<th scope="row">财务</th>`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q: %s", want, around(page, "按机器人"))
		}
	}
	tokens := map[string]int{}
	for next, n := "", 0; n == 0 || next != "" && n < 5; n++ {
		_, text := b.do("GET", "/api/v1/usage?by=bot&limit=1&cursor="+next, "", "Authorization", "Bearer "+adminToken)
		var answer struct {
			Items []struct {
				Bot    string `json:"bot"`
				Tokens int    `json:"prompt_tokens"`
			} `json:"items"`
			Next string `json:"next"`
		}
		if err := json.Unmarshal([]byte(text), &answer); err != nil || len(answer.Items) != 1 {
			t.Fatalf("page %d: %v %s", n, err, text)
		}
		tokens[answer.Items[0].Bot] += answer.Items[0].Tokens
		next = answer.Next
	}
	if len(tokens) != 2 || tokens["first"] != 1500 || tokens["财务"] != 7 {
		t.Errorf("the API has the tokens %v", tokens)
	}
	if _, page = b.get("/?lang=zh"); !strings.Contains(page, "本月钉钉调用，按机器人") || !strings.Contains(page, "4,211") || !strings.Contains(page, `<b>4,223</b>`) {
		t.Errorf("the overview has no calls by bot: %s", around(page, "小甲"))
	}
	calls = calls[:1]
	w.execute("DELETE FROM model_usage WHERE session_key LIKE 'second/%'")
	if _, page = b.get("/?lang=zh"); strings.Contains(page, "按机器人") || !strings.Contains(page, `<b>789</b>`) {
		t.Errorf("the overview has a table of one bot: %s", around(page, "小甲"))
	}
	if _, page = b.get("/usage?lang=zh"); strings.Contains(page, "按机器人") {
		t.Error("the usage has a table of one bot")
	}
}
