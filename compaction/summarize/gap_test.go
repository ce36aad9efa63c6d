package summarize

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ebb/compaction/compactiontest"
	"ebb/sessions"
)

func TestGapNote(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 5, 1, 2, 0, 0, time.UTC)
	events := []sessions.Event{compactiontest.Said(12, "李娜", "订单 A-10086，见https://a.cn/x，谢谢"), compactiontest.Answered(13, "好"), {Seq: 14, Role: sessions.RoleTool, Content: "ok"}, compactiontest.Said(15, "张伟", "密码是 hunter2x9"), compactiontest.Said(16, "李娜", "嗯")}
	for i := range events {
		events[i].CreatedAt = at.Add(time.Duration(i) * time.Minute)
	}
	shanghai := time.FixedZone("CST", 8*3600)
	zh := GapNote(events, shanghai, "", 8)
	if want := `[此处略去序号 12-16，共 5 条，2026-03-05 09:02 至 2026-03-05 09:06。发言：李娜(u李娜) 2 条、张伟(u张伟) 1 条、助手 1 条、工具 1 条。其中提到：A-10086、https://a.cn/x。看原文：query_history {"range":"12-16"}。]`; zh != want {
		t.Errorf("\n%s, want\n%s", zh, want)
	}
	en := GapNote(events[:1], nil, "en", 1)
	if want := `[Left out here: numbers 12, 1 in all, 2026-03-05 01:02 to 2026-03-05 01:02. Spoken by: 李娜(u李娜) (1). Named there: A-10086. To read them: query_history {"range":"12"}.]`; en != want {
		t.Errorf("\n%s, want\n%s", en, want)
	}
	if got := GapNote(nil, nil, "zh", 8); got != "" {
		t.Errorf("a note of nothing: %s", got)
	}
}

// P83: a note is the same for the same events, one line, and as long as it may be however many events it stands for.
func TestGapNotesAreBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		events := compactiontest.Conversations().Draw(t, "events")
		most := rapid.IntRange(0, 30).Draw(t, "most")
		note := GapNote(events, nil, "zh", most)
		if note != GapNote(events, nil, "zh", most) {
			t.Fatal("two notes of the same events differ")
		}
		if strings.Contains(note, "\n") {
			t.Fatalf("a note of several lines: %q", note)
		}
	})
	var many []sessions.Event
	for i := range 3000 {
		many = append(many, compactiontest.Said(int64(i+1), fmt.Sprintf("成员%d号", i%500), fmt.Sprintf("单号 %d", 100000+i)))
	}
	note := GapNote(many, nil, "zh", 24)
	if n := compactiontest.Counter().Count(note); n > 600 || !strings.Contains(note, "另外 492 人") || !strings.Contains(note, "102999") {
		t.Errorf("%d tokens: %s", n, note)
	}
}
