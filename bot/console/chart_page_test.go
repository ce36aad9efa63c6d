package console_test

import (
	"net/url"
	"strings"
	"testing"
)

// After /new the chart has the compactions and flushes of the new generation alone, from the end of the older one on.
func TestChartAfterNew(t *testing.T) {
	t.Parallel()
	w := open(t)
	b := w.enter(w.serve(nil), adminToken)
	w.execute(`UPDATE dingtalk_session_events SET created_at = '2026-05-20 08:00Z'::timestamptz + interval '1 hour' * seq WHERE session_key = '` + groupKey + `'`)
	w.execute(`UPDATE compaction_log SET created_at = '2026-05-21 04:30Z'`)
	w.execute(`UPDATE memory_flushes SET created_at = '2026-05-21 04:20Z'`)
	w.execute(`INSERT INTO memory_flushes (session_key, trigger, gen, from_seq, through_seq, created_at)
		VALUES ('` + groupKey + `', 'new', 0, 20, 30, '2026-05-21 14:10Z'), ('` + groupKey + `', 'threshold', 1, 30, 36, '2026-05-21 20:10Z')`)
	w.execute(`UPDATE dingtalk_sessions SET gen = 1, base_seq = 30, compacted_seq = 30, flushed_seq = 36, total_tokens = 600,
		created_at = '2026-05-20 08:00Z', last_active_at = '2026-05-22 00:00Z' WHERE session_key = '` + groupKey + `'`)
	_, page := b.get("/sessions/" + url.PathEscape(groupKey) + "?lang=en")
	if strings.Count(page, `<circle class="flush"`) != 2 || strings.Contains(page, `<circle class="mark"`) {
		t.Errorf("the chart has not the one flush of its generation, with a legend, and no compaction: %s", around(page, `<circle`))
	}
	if !strings.Contains(page, `dy="-6">2026-05-21 14:00:00<`) || !strings.Contains(page, "Since the newest /new") {
		t.Errorf("the chart does not begin with the generation: %s", around(page, `dy="-6"`))
	}
	if strings.Count(page, `class="cut"`) != 1 {
		t.Error("the older generation's compaction is not in the conversation")
	}
}

// Marks at the same place are drawn so that none hides a rarer one: flushes below compactions, and these below undos.
func TestChartShowsEachMark(t *testing.T) {
	t.Parallel()
	w := open(t)
	b := w.enter(w.serve(nil), adminToken)
	w.execute(`UPDATE compaction_log SET created_at = '2026-05-21 04:30Z' WHERE session_key = '` + groupKey + `'`)
	w.execute(`UPDATE memory_flushes SET created_at = '2026-05-21 04:30Z' WHERE session_key = '` + groupKey + `'`)
	w.execute(`INSERT INTO compaction_log (session_key, trigger, policy, start_seq, end_seq, tokens_before, tokens_after, outcome, created_at)
		VALUES ('` + groupKey + `', 'undo', 'token_budget', 1, 4, 1000, 4000, 'committed', '2026-05-21 04:30Z')`)
	w.execute(`UPDATE dingtalk_sessions SET created_at = '2026-05-20 08:00Z', last_active_at = '2026-05-22 00:00Z' WHERE session_key = '` + groupKey + `'`)
	_, page := b.get("/sessions/" + url.PathEscape(groupKey))
	_, plot, _ := strings.Cut(page, `<svg class="plot"`)
	last := -1
	for _, mark := range []string{`<circle class="flush"`, `<circle class="mark"`, `<path class="undo"`} {
		first, end := strings.Index(plot, mark), strings.LastIndex(plot, mark)
		if first < 0 || first < last {
			t.Errorf("%s is not in its layer: %s", mark, around(plot, "<circle"))
		}
		last = end
	}
}

// A conversation that never began again is in its first context.
func TestGenerationsCountFromOne(t *testing.T) {
	t.Parallel()
	w := open(t)
	b := w.enter(w.serve(nil), adminToken)
	w.execute(`UPDATE dingtalk_sessions SET gen = 0`)
	if _, page := b.get("/sessions/" + url.PathEscape(groupKey)); !strings.Contains(page, "<dd>第 1 轮</dd>") {
		t.Errorf("the generation is not the first: %s", around(page, "对话轮次"))
	}
}

// People have a tab of their own, for roles that see all groups, which is marked on their pages alone.
func TestPeopleHaveATab(t *testing.T) {
	t.Parallel()
	w := open(t)
	b := w.enter(w.serve(nil), adminToken)
	const tab, current = `<a href="/people">人员</a>`, `<a href="/people" aria-current="page">人员</a>`
	for _, path := range []string{"/", "/memories", "/audit"} {
		if _, page := b.get(path); !strings.Contains(page, tab) {
			t.Errorf("%s has no tab of people", path)
		}
	}
	for _, path := range []string{"/people", "/people/staff0001"} {
		if _, page := b.get(path); strings.Count(page, current) != 1 || strings.Count(page, `aria-current="page"`) != 1 {
			t.Errorf("%s does not mark the tab of people: %s", path, around(page, `aria-current`))
		}
	}
}
