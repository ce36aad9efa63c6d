package console_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"ebb/bot/console"
)

// apiCheck compares answers of the API with its description.
type apiCheck struct {
	*browser
	router routers.Router
}

func (a apiCheck) call(path, token, accept string) (int, string) {
	a.t.Helper()
	r, err := http.NewRequestWithContext(a.t.Context(), http.MethodGet, a.base+"/api/v1/"+path, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Accept", accept)
	resp, err := a.http.Do(r)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	r.URL.Scheme, r.URL.Host = "", ""
	route, params, err := a.router.FindRoute(r)
	if err != nil {
		a.t.Fatalf("%s: %v", path, err)
	}
	in := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route},
		Status:                 resp.StatusCode, Header: resp.Header, Body: resp.Body,
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	}
	if err := openapi3filter.ValidateResponse(a.t.Context(), in); err != nil {
		a.t.Errorf("%s: the answer is not as described: %v", path, err)
	}
	text, err := io.ReadAll(in.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// The description of the API has exactly its lists, and each answer is as described, also a refusal.
func TestAPIIsAsDescribed(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.execute(`INSERT INTO restarts (replica, started_at) VALUES ('r1', now())`)
	w.execute(`INSERT INTO model_usage (session_key, day, kind, prompt_tokens, cost) VALUES ('` + groupKey + `', current_date, 'flush', 900, 0.01)`)
	w.addSchedule(groupKey, 1, "remind", "喝水")
	w.execute(`INSERT INTO files (session_key, name, kind, media_id, bytes, pages, kept_by, event_id, kept_event)
		VALUES ('` + groupKey + `', '手册.docx', 'docx', 'm', 9, 3, 'staff0001', 0, 0)`)
	w.execute(`INSERT INTO approvals (session_key, id, turn_event_id, tool, arguments, asked_by, expires_at) VALUES ('` + groupKey + `', 1, 1, 'x__y', '{}', 'staff0001', now())`)
	a := apiCheck{browser: w.visit(w.serve(nil))}
	_, text := a.get("/api/v1/openapi.yaml")
	doc, err := openapi3.NewLoader().LoadFromData([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	var described []string
	for path := range doc.Paths.Map() {
		described = append(described, strings.TrimPrefix(path, "/"))
	}
	lists := console.APIPaths()
	slices.Sort(described)
	slices.Sort(lists)
	if !slices.Equal(described, lists) {
		t.Fatalf("the API has %q and its description %q", lists, described)
	}
	if a.router, err = gorillamux.NewRouter(doc); err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		path := strings.Replace(list, "{key}", url.PathEscape(groupKey), 1)
		for _, token := range []string{adminToken, viewerToken} {
			if status, text := a.call(path, token, "*/*"); status != http.StatusOK || strings.Contains(text, `"items":[]`) {
				t.Errorf("%s: %d %s", path, status, text)
			}
		}
		if status, text := a.call(path+"?limit=0", adminToken, "*/*"); status != http.StatusBadRequest {
			t.Errorf("%s without rows: %d %s", path, status, text)
		}
	}
	a.checkUsage(w)
	if status, text := a.call("sessions/none/events", adminToken, "*/*"); status != http.StatusNotFound {
		t.Errorf("an unknown conversation: %d %s", status, text)
	}
	for _, list := range lists {
		path := strings.Replace(list, "{key}", url.PathEscape(groupKey), 1)
		if status, text := a.call(path, "wrong", "*/*"); status != http.StatusUnauthorized && status != http.StatusTooManyRequests {
			t.Errorf("%s with a wrong token: %d %s", path, status, text)
		}
	}
}

// checkUsage checks the usage by each division, as pages of one row.
func (a apiCheck) checkUsage(w *world) {
	a.t.Helper()
	w.execute("DELETE FROM model_usage")
	w.execute(`INSERT INTO model_usage (session_key, day, kind, model, person, prompt_tokens, cost)
		SELECT '` + groupKey + `', current_date - i * 20, 'turn', 'm' || i, CASE i WHEN 3 THEN '' ELSE 'staff000' || i END, 100, 0.5 FROM generate_series(0, 3) i`)
	for query, rows := range map[string]int{"by=person": 2, "by=model": 2, "by=person&days=90": 4, "by=model&days=7": 1, "by=group": 2, "by=all&days=90": 4, "by=day&days=7": 1} {
		tokens, seen := 0, map[string]bool{}
		for next, page := "", 0; page == 0 || next != "" && page < 9; page++ {
			status, text := a.call("usage?limit=1&"+query+"&cursor="+next, adminToken, "*/*")
			var answer struct {
				Items []map[string]any
				Next  string
			}
			if err := json.Unmarshal([]byte(text), &answer); status != http.StatusOK || err != nil {
				a.t.Fatalf("%s: %d %v %s", query, status, err, text)
			}
			for _, item := range answer.Items {
				seen[fmt.Sprint(item)], tokens = true, tokens+int(item["prompt_tokens"].(float64))
			}
			next = answer.Next
		}
		if wanted := 100 * rows; len(seen) != rows || query != "by=day&days=7" && tokens != wanted {
			a.t.Errorf("%s: %d rows with %d tokens, want %d rows: %v", query, len(seen), tokens, rows, seen)
		}
	}
	if _, text := a.call("usage?by=person", adminToken, "*/*"); !strings.Contains(text, `"person_id":"staff0001","person_nick":"张伟"`) {
		a.t.Errorf("usage by person is %s", text)
	}
	if _, text := a.call("usage?by=person", viewerToken, "*/*"); !strings.Contains(text, "staff0001") || strings.Contains(text, "person_nick") {
		a.t.Errorf("usage by person for a viewer is %s", text)
	}
	if _, text := a.do("GET", "/api/v1/usage?by=all&days=90&limit=1", "", "Authorization", "Bearer "+adminToken, "Accept", "application/x-ndjson"); strings.Count(text, "\n") != 4 {
		a.t.Errorf("all usage as lines is %s", text)
	}
	for _, query := range []string{"by=nick", "by=model&days=8", "by=all&cursor=eyJrIjoie30ifQ", "by=all&cursor=x"} {
		if status, text := a.call("usage?"+query, adminToken, "*/*"); status != http.StatusBadRequest {
			a.t.Errorf("%s: %d %s", query, status, text)
		}
	}
}

// An export has each row of a list once, one in a line, over more than one page and under the filter.
func TestExportOfAList(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.execute(`INSERT INTO dingtalk_sessions (session_key, robot_code, conversation_id, conversation_type, title)
		SELECT 'robot/many' || i, 'robot', 'many' || i, '2', 'many' FROM generate_series(1, 1203) i`)
	b := w.visit(w.serve(nil))
	status, text := b.do("GET", "/api/v1/sessions?q=many&limit=7", "", "Authorization", "Bearer "+adminToken, "Accept", "text/plain, application/x-ndjson;q=0.9")
	seen := map[string]int{}
	for line := range strings.Lines(text) {
		var row struct {
			Key string `json:"session_key"`
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		seen[row.Key]++
	}
	if counts := slices.Collect(maps.Values(seen)); status != http.StatusOK || len(seen) != 1203 || slices.Max(counts) != 1 {
		t.Errorf("%d: %d rows of 1203", status, len(seen))
	}
	_, text = b.do("GET", "/api/v1/sessions/"+url.PathEscape(privateKey)+"/events", "", "Authorization", "Bearer "+viewerToken, "Accept", "application/x-ndjson")
	if strings.Count(text, "\n") != 4 || strings.Contains(text, "secret") {
		t.Errorf("a viewer exports %s", text)
	}
}
