package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"ebb/sessions"
	"ebb/sql/compactions"
)

// attempt is a row of the compaction log with something to say in every place.
func attempt() sessions.LogEntry {
	return sessions.LogEntry{
		ID: 7, Key: "r/c", Trigger: "window", Policy: "sliding_window", Mode: "summary_plus_prune", Model: "main", Focus: "端口",
		TokensBefore: 9000, TokensAfter: 4000, StartSeq: 1, EndSeq: 12, FlushOutcome: "flushed", Duration: 1500 * time.Millisecond,
		Audit: `{"source_tokens":5500,"summary_tokens":500,"calls":2,"recall":0.9583,"precision":1,"missing":["8443","v1.2"],"repaired":true,` +
			`"rolled_up":3,"fallback":"spare","offloads_deleted":4,"memories":["发布窗口定在周五"],"healed":false,"later_field":5}`,
		Usage: sessions.Usage{Prompt: 6000, Cached: 100, Completion: 500}, Cost: 0.5, Outcome: "committed", Undone: time.Unix(1_800_000_000, 0),
	}
}

func TestShowCompaction(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	at := clock{time.FixedZone("Asia/Shanghai", 8*3600)}
	if err := showCompaction(&out, viewCompaction(attempt(), compactions.End{}), at, "CNY", false); err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(out.String()) {
		parts := regexp.MustCompile(` {2,}`).Split(strings.TrimSpace(line), 2)
		rows[parts[0]] = parts[len(parts)-1]
	}
	for name, want := range map[string]string{
		"trigger": "window", "policy": "sliding_window", "mode": "summary_plus_prune", "model": "main", "tokens": "9000 -> 4000 (5000 freed)",
		"events": "1-12", "took": "1.5s", "cost": "0.5000 CNY", "identifiers kept": "95.8 %", "identifiers of the source": "100 %", "added verbatim": "8443, v1.2",
		"written again": "yes", "older summaries joined": "3", "fallback model": "spare", "offloads deleted": "4", "saved to memory": "发布窗口定在周五",
		"later field": "5", "undone": "2027-01-15 16:00:00 Asia/Shanghai", "erased": "-",
	} {
		if rows[name] != want {
			t.Errorf("%s is %q, want %q in\n%s", name, rows[name], want, out.String())
		}
	}
	if _, there := rows["mended without a model"]; there {
		t.Errorf("what did not happen is shown:\n%s", out.String())
	}
	if got := outcomeOf(viewCompaction(attempt(), compactions.End{})); got != "committed, undone" {
		t.Errorf("a list says %q of one that was undone", got)
	}
	if rows := auditRows("not JSON"); len(rows) != 1 || rows[0][1] != "not JSON" {
		t.Errorf("an audit that is no JSON is shown as %q", rows)
	}
}

// Views separate an erasure's reset from an undo, and a larger context from a freed one. The summary stands at the end.
func TestShowCompactionEnds(t *testing.T) {
	t.Parallel()
	e := attempt()
	e.TokensBefore, e.TokensAfter = 4000, 9000
	view := viewCompaction(e, compactions.End{SummaryID: 12, Erased: true})
	view.Summary = "第一行\n第二行"
	var out bytes.Buffer
	if err := showCompaction(&out, view, clock{time.UTC}, "CNY", false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`undone +-\n`, `erased +2027-01-15 08:00:00 UTC\n`, `4000 -> 9000 \(grew by 5000\)\n`, `newest summary +12\n\n第一行\n第二行\n$`} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("%s is not in\n%s", want, out.String())
		}
	}
	if got := outcomeOf(view); got != "committed, erased" {
		t.Errorf("a list says %q of one that was erased", got)
	}
	out.Reset()
	if err := showCompaction(&out, view, clock{time.UTC}, "CNY", true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"summary_id":12`, `"summary":"第一行\n第二行"`, `"erased_at":"2027-`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is not in %s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "undone_at") {
		t.Errorf("it counts as undone: %s", out.String())
	}
}
