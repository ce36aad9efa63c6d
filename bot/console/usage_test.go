package console_test

import (
	"net/http"
	"strings"
	"testing"
)

// Usage is shown by person and model, and exported with each division. Names are no formulas in a spreadsheet.
func TestUsageByPersonAndModel(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.execute(`UPDATE dingtalk_session_events SET sender_nick = '=HYPERLINK(1)' WHERE sender_id = 'staff0001'`)
	w.execute(`INSERT INTO model_usage (session_key, day, kind, model, person, prompt_tokens, completion_tokens, cost)
		VALUES ('` + groupKey + `', (now() AT TIME ZONE 'UTC')::date, 'turn', 'qwen', 'staff0001', 1234, 5, 0.5),
			('` + groupKey + `', (now() AT TIME ZONE 'UTC')::date, 'flush', 'small', '', 10, 1, 0.1)`)
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
		"person": "\n,,,,,staff0001,'=HYPERLINK(1),1234,0,5,0.5\n", "model": "\n,,,,small,,,10,0,1,0.1\n", "group": "\n,robot/cidGroup,支付网关发布,,,staff0001,",
		"all": ",robot/cidGroup,支付网关发布,turn,qwen,staff0001,'=HYPERLINK(1),1234,0,5,0.5\n",
	} {
		if status, text := b.get("/usage?format=csv&by=" + by); status != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("the export by %s: %d %q, want %q", by, status, text, want)
		}
	}
	if status, _ := b.get("/usage?format=csv&by=nick"); status != http.StatusBadRequest {
		t.Errorf("an unknown division: %d", status)
	}
}
