package erase

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ebb/sessions"
)

// A summary loses the lines that repeat what was erased, in whatever words they do, and no others.
func TestErasureHeals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		said, kept    []string
		summary, want string
	}{
		"a fact in other words": {
			[]string{"我女儿叫豆豆，在三小上二年级"},
			[]string{"周会改到周三上午十点", "支付联调的接口文档在 wiki-4471", "预算是 20000 元"},
			"## 用户与身份\n- 李娜：女儿豆豆读三小\n- 张伟：负责支付联调\n## 决定与约束\n- 周会改到周三上午十点\n## 关键标识\n- wiki-4471\n- 20000 元",
			"## 用户与身份\n- 张伟：负责支付联调\n## 决定与约束\n- 周会改到周三上午十点\n## 关键标识\n- wiki-4471\n- 20000 元",
		},
		"one sentence of several": {
			[]string{"my locker code is 48,213"},
			[]string{"the release moved to Friday", "Bob owns the login bug"},
			"The release moved to Friday. Li noted that locker 48213 is hers. Bob owns the login bug.",
			"The release moved to Friday. Bob owns the login bug.",
		},
		"words that others said too": {
			[]string{"工资 30000"},
			[]string{"工资条周五发", "预算 30000", "周会在周三"},
			"- 工资条周五发\n- 李娜：工资 30000\n- 预算 30000\n- 周会在周三",
			"- 工资条周五发\n- 预算 30000\n- 周会在周三",
		},
		"a source by its number": {
			[]string{"嗯，就那个"},
			[]string{"发布窗口定在周五", "周会在周三"},
			"- 发布窗口定在周五\n- 周会在周三\n## 关键标识（原文）\n- X9 — 李娜, #1: 那个",
			"- 发布窗口定在周五\n- 周会在周三\n## 关键标识（原文）",
		},
		"nothing of it": {
			[]string{"我对花生过敏"}, []string{"周会在周三"}, "- 周会在周三\n- 下周发布", "- 周会在周三\n- 下周发布",
		},
		"most of it": {
			[]string{"豆豆在三小读书，学号 88123"}, []string{"周会在周三"}, "- 豆豆在三小\n- 学号 88123\n- 周会在周三", sessions.ErasedText,
		},
		"another language": {
			[]string{"my daughter is called Bean and visits the third primary school"},
			[]string{"周会在周三"},
			"- 女儿在第三小学读书\n- 周会在周三\n- 周五发布", sessions.ErasedText,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := New()
			for i, text := range c.said {
				e.AddSeq(int64(i + 1))
				e.AddStatement(text)
			}
			for i, text := range c.kept {
				e.AddKept(int64(len(c.said)+i+1), "张伟: "+text)
			}
			got, tokens := e.Heal(c.summary, 100, 1, 10, func(string) bool { return false })
			if got != c.want {
				t.Errorf("left is\n%s\nwant\n%s", got, c.want)
			}
			if c.want != c.summary && tokens >= 100 || c.want == c.summary && tokens != 100 {
				t.Errorf("it counts %d tokens", tokens)
			}
		})
	}
}

// Events outside of the summary's range share no word with it: a line is there by the erased event alone.
func TestErasureLooksInTheRange(t *testing.T) {
	t.Parallel()
	e := New()
	e.AddSeq(2)
	e.AddStatement("代号是蓝鲸")
	e.AddKept(1, "周会在周三")
	e.AddKept(40, "昨晚看了蓝鲸的纪录片")
	summary := "- 周会在周三\n- 项目取名蓝鲸\n- 午饭吃面"
	if got, _ := e.Heal(summary, 9, 1, 5, func(string) bool { return false }); strings.Contains(got, "蓝鲸") || !strings.Contains(got, "午饭") {
		t.Errorf("of the first part is left\n%s", got)
	}
	if got, _ := e.Heal(summary, 9, 1, 50, func(string) bool { return false }); got != summary {
		t.Errorf("of the whole is left\n%s", got)
	}
}

// After any erasure, none of its words is left, and no line is lost without an erased word.
func TestErasureProperty(t *testing.T) {
	t.Parallel()
	word := rapid.StringMatching(`[\p{Han}]{2,4}|[b-z]{4,8}q|[1-9][0-9]{3,9}`)
	rapid.Check(t, func(t *rapid.T) {
		facts := rapid.SliceOfNDistinct(rapid.SliceOfN(word, 1, 4), 2, 20, func(f []string) string { return strings.Join(f, " ") }).Draw(t, "facts")
		gone := rapid.IntRange(0, len(facts)-1).Draw(t, "gone")
		e := New()
		e.AddSeq(int64(gone + 1))
		e.AddStatement(strings.Join(facts[gone], "，"))
		var lines []string
		all := ""
		for i, f := range facts {
			if i != gone {
				e.AddKept(int64(i+1), strings.Join(f, "，"))
				all += strings.Join(f, "|") + "|"
			}
			lines = append(lines, fmt.Sprintf("- %s", strings.Join(f, "、")))
		}
		got, _ := e.Heal(strings.Join(lines, "\n"), 50, 1, 20, func(string) bool { return false })
		for _, w := range facts[gone] {
			known := len(piecesOf(w)) > 0 && !strings.Contains(all, w)
			for piece := range piecesOf(w) {
				known = known && !piecesOf(all)[piece]
			}
			if known && strings.Contains(got, w) {
				t.Fatalf("%q is left in\n%s", w, got)
			}
		}
		if got == sessions.ErasedText {
			return
		}
		erased := piecesOf(strings.Join(facts[gone], "，"))
		for i, line := range lines {
			shares := false
			for piece := range piecesOf(line) {
				shares = shares || erased[piece]
			}
			if i != gone && !shares && !strings.Contains(got, line) {
				t.Fatalf("%q is lost from\n%s", line, got)
			}
		}
	})
}
