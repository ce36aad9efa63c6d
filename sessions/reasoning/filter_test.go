package reasoning

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestTheAnswerIsKept lists texts as models write them, each with its answer.
func TestTheAnswerIsKept(t *testing.T) {
	t.Parallel()
	example := "写法如下：\n\n```xml\n<think>\n推理\n</think>\n答案\n```\n\n以上。"
	for in, want := range map[string]string{
		"":                                                    "",
		"部署在周五":                                               "部署在周五",
		"<think>想\n想</think>\n\n答":                            "答",
		"<thinking>想</thinking>答":                             "答",
		"<thought>想</thought>答":                               "答",
		"<seed:think>想</seed:think>答":                         "答",
		"\n <think>\n</think>\n答":                             "答",
		"<think>没想完":                                          "",
		"<think>没想完</thi":                                     "",
		"嗯，先想想</think>\n\n答":                                  "答", // a template wrote the opening tag
		"嗯\n```py\nx\n```\n好</think>\n答":                      "答",
		"好的。\n<think>想</think>\n答":                            "好的。\n\n答",
		"好的。\n<think>没想完":                                     "好的。\n<think>没想完",
		"a < b，a <thi":                                        "a < b，a <thi",
		"<<think>甲</think>":                                   "<<think>甲</think>",
		"<think>一</think><think>二</think>答":                   "答",
		"<think>a<think>b</think>c</think>答":                  "答",
		"<think>a<think>b</think>c<think>d</think>e</think>答": "答",
		"<think>不要用 <think> 标签</think>答":                      "答",
		"<think>他问 `</think>` 的意思</think>答":                   "答",
		"<think>用 `x`</think>答":                               "答",
		"<think>单个 ` 号</think>答":                              "答",
		"<think>例：\n```\n<think>x</think>\n```\n完</think>答":   "答",
		"<think>例：\n```\n<think>x</think>\n```\n没想完":          "",
		"<think>草稿：\n```py\nprint(1)</think>答":                "答",
		// questions about the tags: text of the answer
		example:                                example,
		"<think>他问标签</think>" + example:        example,
		"> ```\n> <think>\n> ```\n引用":          "> ```\n> <think>\n> ```\n引用",
		"~~~\n</think>\n```\n</think>\n~~~\n答": "~~~\n</think>\n```\n</think>\n~~~\n答",
		"````\n```\n</think>\n````\n答":         "````\n```\n</think>\n````\n答",
		"`<think>` 和 `</think>` 是一对":           "`<think>` 和 `</think>` 是一对",
		"``a ` </think>`` 是代码":                 "``a ` </think>`` 是代码",
		"标签 <think> 和 </think> 是一对":            "标签 <think> 和 </think> 是一对",
		"```x```\n结束：</think>\n答":              "答", // one line of code opens no block
	} {
		if got := Strip(in); got != want {
			t.Errorf("of %q\n got %q\nwant %q", in, got, want)
		}
	}
}

// stream pushes a text in pieces of n bytes and returns the shown text, at its end and all that was ever shown.
func stream(t fataler, f *Filter, text string, n int) (shown, ever string) {
	var all strings.Builder
	add := func(s string, undo bool) {
		if undo {
			shown = ""
		}
		shown += s
		all.WriteString(s)
	}
	for s := text; s != ""; {
		k := min(n, len(s))
		add(f.Push(s[:k]))
		s = s[k:]
	}
	add(f.Finish(), false)
	if shown != f.Text() {
		t.Fatalf("of %q, %q is shown and %q kept", text, shown, f.Text())
	}
	return shown, all.String()
}

type fataler interface{ Fatalf(string, ...any) }

func TestPiecesDoNotMatter(t *testing.T) {
	t.Parallel()
	part := rapid.SampledFrom([]string{
		"<think>", "</think>", "<thinking>", "</thinking>", "<", "</thi", "<|channel|>", "analysis", "final", "<|message|>", "<|end|>", "<|start|>assistant", " to=functions.x", "：",
		"<|end|><|start|>assistant<|channel|>final<|message|>", "<|channel|>analysis<|message|>", "<|call|>", "assistantfinal", "W", "`", "``", "```", "~~~", "\n", "> ", " ", "想", "答案", "x",
	})
	rapid.Check(t, func(r *rapid.T) {
		text := strings.Join(rapid.SliceOfN(part, 0, 30).Draw(r, "parts"), "")
		assume := rapid.Bool().Draw(r, "assume")
		run := func(n int) (string, string) {
			var f Filter
			if assume {
				f.Assume()
			}
			shown, _ := stream(r, &f, text, n)
			return shown, f.TakeThought()
		}
		one, thought := run(max(len(text), 1))
		cut, cutThought := run(rapid.IntRange(1, 9).Draw(r, "bytes"))
		if one != cut || thought != cutThought {
			r.Fatalf("in one piece %q and %q, in pieces %q and %q", one, thought, cut, cutThought)
		}
	})
}

// Tagged reasoning is never shown, not even for a moment before an undo.
func TestTaggedReasoningIsNeverShown(t *testing.T) {
	t.Parallel()
	part := rapid.SampledFrom([]string{"秘", "\n", "`x`", "\n```\n秘\n```\n", "<think>秘</think>", " <think>秘</think>秘", "\n```\n<think>秘</think>\n```\n"})
	rapid.Check(t, func(r *rapid.T) {
		thought := strings.Join(rapid.SliceOfN(part, 0, 12).Draw(r, "thought"), "")
		var f Filter
		shown, ever := stream(r, &f, "<think>"+thought+"</think>答案 `<think>`\n", rapid.IntRange(1, 20).Draw(r, "bytes"))
		if strings.Contains(ever, "秘") || shown != "答案 `<think>`\n" {
			r.Fatalf("shown %q, in the end %q", ever, shown)
		}
	})
}

func TestReasoningWithoutATag(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"嗯，秘密</think>\n答":             "答",
		"<think>秘密</think>答":          "答",
		"\n<think>秘密</think>答":        "答",
		"直接回答":                        "直接回答",
		"秘密\n```\n秘密</think>\n答":      "答",
		"秘密，见 `</think>`。\n</think>答": "答",
	} {
		var f Filter
		f.Assume()
		got, ever := stream(t, &f, in, 3)
		if got != want || strings.Contains(ever, "秘密") {
			t.Errorf("of %q, %q is shown and %q kept", in, ever, got)
		}
	}
	var f Filter
	stream(t, &f, "嗯</think>答", 3)
	if !f.Untagged() {
		t.Error("reasoning without a tag is not noticed")
	}
}

func TestThoughtsCanBeRead(t *testing.T) {
	t.Parallel()
	var f Filter
	f.Push("<think>先看")
	one := f.TakeThought()
	f.Push("日程</think>答")
	if two := f.TakeThought(); one != "先看" || two != "日程" || f.TakeThought() != "" {
		t.Errorf("thoughts are %q and %q", one, two)
	}
}

func FuzzFilter(f *testing.F) {
	f.Add("<think>a</think>b", 3)
	f.Add("a</think>`<think>`<think>c</think", 1)
	f.Add("<<think><think></think></think>\n```", 2)
	f.Fuzz(func(t *testing.T, text string, n int) {
		var one, cut Filter
		whole, _ := stream(t, &one, text, max(len(text), 1))
		if pieces, _ := stream(t, &cut, text, 1+int(uint(n)%64)); pieces != whole {
			t.Errorf("in one piece %q, in pieces %q", whole, pieces)
		}
	})
}
