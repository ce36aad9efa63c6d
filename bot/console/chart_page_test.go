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
