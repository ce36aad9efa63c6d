package console_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"ebb/bot/console"
	"ebb/bot/manage"
	"ebb/memory"
	"ebb/sessions"
)

// brokenMessages fails to read the messages of a person, and their memories if facts is set.
type brokenMessages struct {
	memory.Rights
	facts bool
}

var errBroken = errors.New("secret words of the storage")

func (b brokenMessages) FactsOf(ctx context.Context, robot sessions.RobotCode, who sessions.UserID, after int64, limit int) ([]memory.Memory, error) {
	if b.facts && limit > 1 { // one is the question whether anything is kept
		return nil, errBroken
	}
	return b.Rights.FactsOf(ctx, robot, who, after, limit)
}

func (b brokenMessages) MessagesOf(context.Context, sessions.RobotCode, sessions.UserID, int64, int) ([]memory.PersonMessage, error) {
	return nil, errBroken
}

// An export of a person that fails after its first row breaks the connection, and one that fails before is an error page.
func TestBrokenExportOfAPerson(t *testing.T) {
	t.Parallel()
	w := open(t)
	export := func(facts bool) (*http.Response, error) {
		t.Helper()
		b := w.enter(w.serve(func(c *console.Config) {
			c.Reads = manage.New(manage.Config{Audit: c.Audit, Rights: brokenMessages{w.store.Rights, facts}})
		}), adminToken)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.base+"/people/staff0001/export", nil)
		if err != nil {
			t.Fatal(err)
		}
		return b.http.Do(r)
	}
	resp, err := export(false)
	if err == nil {
		text, broken := io.ReadAll(resp.Body)
		if err = broken; err == nil {
			t.Errorf("a part of the export looks whole: %d %.300s", resp.StatusCode, text)
		}
		_ = resp.Body.Close()
	}
	resp, err = export(true)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusInternalServerError || resp.Header.Get("Content-Disposition") != "" || strings.Contains(string(text), "secret") {
		t.Errorf("an export without a row: %d %v %v %.300s", resp.StatusCode, resp.Header, err, text)
	}
	if all := scan[bool](w, "SELECT count(*) >= 2 AND bool_and(action = 'export_person' AND outcome = 'failed') FROM audit"); !all { // a client may repeat a request
		t.Error("the failed exports are not in the audit")
	}
}
