package similarity

import (
	"slices"
	"strings"
	"testing"
)

// A set finds the texts that repeat its own, by marks, as a whole, or as a saying with other words around it.
func TestSetRepeats(t *testing.T) {
	t.Parallel()
	s := New()
	s.Add("门禁卡号 887766，放在前台")
	s.Add("热咖啡机")
	s.AddSaying("张伟：明天（2026-11-22）把上线窗口改到周四晚上十点")
	for text, want := range map[string]bool{
		"卡号是887766": true, "那台热咖啡机坏了": true, "好的，明天把上线窗口改到周四晚上十点": true, "明天把上线窗口改到周四晚上十一点吧": true,
		"卡号是 887755": false, "咖啡机": false, "上线窗口": false, "": false, "周五再定": false,
	} {
		if got := s.Repeats(text); got != want {
			t.Errorf("Repeats(%q) = %v", text, got)
		}
	}
	if s.AddSaying("好的") {
		t.Error("a text too short to identify became a saying")
	}
	if got := s.Pieces(); len(got) == 0 || !slices.IsSorted(got) {
		t.Errorf("the pieces are %q", got)
	}
}

// In another session an identifier of work is common knowledge, and a long number is not.
func TestSetRepeatsFar(t *testing.T) {
	t.Parallel()
	s := New()
	s.AddIdentifiers("工单 OPS-4711，电话 13800138000，mail li@a.cn")
	for text, want := range map[string]bool{"回电 13800138000": true, "见 OPS-4711": false, "写给 LI@a.cn": true} {
		if got := s.RepeatsFar(text); got != want {
			t.Errorf("RepeatsFar(%q) = %v", text, got)
		}
	}
	if !s.Repeats("见 OPS-4711") {
		t.Error("the same session does not find the ticket")
	}
}

// The clauses of a message that a fact is about are sayings. Without one, the only source of a fact is a saying itself.
func TestSetAddSource(t *testing.T) {
	t.Parallel()
	s := New()
	s.AddSource("今天天气真好啊，上海项目的预算定在两百万元，晚点吃饭", "上海项目的预算定在两百万", true)
	if !s.RepeatsSaying("上海项目的预算定在两百万元") || s.RepeatsSaying("今天天气真好啊") {
		t.Error("the clause of the fact is not the saying")
	}
	s = New()
	s.AddSource("我从来不碰花生酱和坚果", "张伟对花生过敏", true)
	if !s.RepeatsSaying("我从来不碰花生酱和坚果") {
		t.Error("the paraphrased source is no saying")
	}
}

func TestSameStatement(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"张伟：预算定在两百万元", "预算定在两百万元。", true},
		{"联调定在明天（2026-11-22）", "联调定在明天", true},
		{"李娜的分机（8021）", "李娜的分机（8022）", false},
		{"大会议室的门禁密码（8246）", "小会议室的门禁密码（9713）", false},
		{"the PIN of the safe (4711)", "the PIN of the safe (4712)", false},
		{"预算定在 200 万元整", "预算定在 300 万元整", false},
		{"发布窗口在周四晚上", "发布窗口在周四晚上十点开始，由王芳主持并通知大家", false},
	} {
		if got := SameStatement(c.a, c.b); got != c.want {
			t.Errorf("SameStatement(%q, %q) = %v", c.a, c.b, got)
		}
	}
}

// A consolidation repeats the fact of which it has most, and no fact whose number it lacks.
func TestRetells(t *testing.T) {
	t.Parallel()
	content := "上海项目预算两百万元，周四晚上发布"
	others := []string{"王芳负责验收"}
	for old, want := range map[string]bool{
		"上海项目预算两百万元": true, "上海项目预算 300 万元": false, "机房搬到了五楼": false,
	} {
		if got := Retells(content, old, others); got != want {
			t.Errorf("Retells(%q) = %v", old, got)
		}
	}
}

func TestDistinctive(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"好的": false, "OPS-4711": true, "上线窗口改到周四": true, strings.Repeat(" ", 20): false, "ok then": false} {
		if got := Distinctive(text); got != want {
			t.Errorf("Distinctive(%q) = %v", text, got)
		}
	}
}
