package reasoning

import (
	"strings"
	"testing"
)

// The template of gpt-oss has a channel for reasoning. Servers leave all or parts of it in the text.
func TestTheFinalChannelIsTheAnswer(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"<|channel|>analysis<|message|>秘密<|end|><|start|>assistant<|channel|>final<|message|>答":                                                              "答",
		"<|channel|>analysis<|message|>秘密<|end|><|start|>assistant<|channel|>final<|message|>答<|return|>":                                                    "答",
		"<|start|>assistant<|channel|>analysis<|message|>秘密<|end|>\n<|start|>assistant<|channel|>final<|message|>答<|end|>":                                   "答",
		"<|channel|>analysis<|message|>秘密，`<think>` 和 ``` 都不对<|end|><|start|>assistant<|channel|>commentary<|message|>秘密<|end|><|channel|>final<|message|>答": "答",
		"<|channel|>analysis<|message|>秘密<|channel|>final<|message|>答":                                                                                       "答",
		"<|channel|>analysis<|message|>秘密\n<|end|>\n答":                                                                                                       "答",
		"<|channel|>analysis<|message|>秘密":                                                                                                                   "",
		"<|channel|>analysis<|message|>秘密<|end|>":                                                                                                            "",
		"<|channel|>analysis<|message|>秘密<|end|><|start|>assistant<|chan":                                                                                    "",
		"<|channel|>final<|message|>答":                                                                                                                       "答",
		"<|channel|>final <|constrain|>JSON<|message|>{}":                                                                                                    "{}",
		"\n<|channel|>final<|message|>一<|end|><|start|>assistant<|channel|>analysis<|message|>秘密<|end|><|start|>assistant<|channel|>final<|message|>二":       "一二",
		"analysisWe need 秘密.assistantfinal答":                                                                                                                 "答",
		"analysis秘密assistantfinal答":                                                                                                                          "答",
		// a call stays a call
		"<|channel|>analysis<|message|>秘密<|end|><|start|>assistant<|channel|>commentary to=functions.memory_search <|constrain|>json<|message|>{}<|call|>": "<|channel|>commentary to=functions.memory_search<|message|>{}<|call|>",
		"<|start|>assistant to=functions.memory_search<|channel|>commentary json<|message|>{}":                                                             "<|channel|>commentary to=functions.memory_search<|message|>{}",
		"<|channel|>commentary to=functions.x<|message|>{}<|call|><|start|>assistant<|channel|>final<|message|>答":                                          "<|channel|>commentary to=functions.x<|message|>{}<|call|>答",
		// answers about it
		"gpt-oss 用 <|channel|>analysis<|message|> 开始思考，用 <|end|> 结束，再写 <|start|>assistant<|channel|>final<|message|>。": "gpt-oss 用 <|channel|>analysis<|message|> 开始思考，用 <|end|> 结束，再写 <|start|>assistant<|channel|>final<|message|>。",
		"先写 <|start|>assistant<|channel|>final<|message|>答案":                                                           "先写 <|start|>assistant<|channel|>final<|message|>答案",
		"格式：\n<|channel|>analysis<|message|>思考<|end|><|start|>assistant<|channel|>final<|message|>答案":                  "格式：\n<|channel|>analysis<|message|>思考<|end|><|start|>assistant<|channel|>final<|message|>答案",
		"`<|channel|>analysis<|message|>` 开始":                                                                          "`<|channel|>analysis<|message|>` 开始",
		"```\n<|channel|>analysis<|message|>想\n```":                                                                    "```\n<|channel|>analysis<|message|>想\n```",
		"<|channel|>final<|message|>标记 <|end|> 表示结束。":                                                                  "标记 <|end|> 表示结束。",
		"<|channel|> 之后是频道":                                                                                            "<|channel|> 之后是频道",
		"<think>他问 <|channel|>final<|message|> </think>答":                                                              "答",
		"analysis 报告已发": "analysis 报告已发",
		"analysis报告已发":  "analysis报告已发",
		"analy":         "analy",
		"a":             "a",
	} {
		for _, n := range []int{1, 4, 500} {
			var f Filter
			got, ever := stream(t, &f, in, n)
			if strings.TrimSpace(got) != want || strings.Contains(ever, "秘密") {
				t.Errorf("of %q in pieces of %d\n got %q (ever %q)\nwant %q", in, n, got, ever, want)
			}
		}
	}
}

// Some templates write the header of the reasoning, so that it is not in the text.
func TestChannelsWithoutTheFirstHeader(t *testing.T) {
	t.Parallel()
	for _, assume := range []bool{false, true} {
		var f Filter
		if assume {
			f.Assume()
		}
		got, ever := stream(t, &f, "想一想，秘密<|end|><|start|>assistant<|channel|>final<|message|>答", 3)
		if got != "答" || !f.Untagged() || assume && strings.Contains(ever, "秘密") {
			t.Errorf("assume %v: got %q, ever %q, untagged %v", assume, got, ever, f.Untagged())
		}
	}
}

// Text that is held back can be looked at: it may repeat without end.
func TestHeldTextCanBeRead(t *testing.T) {
	t.Parallel()
	for _, lead := range []string{"<think>", "<|channel|>analysis<|message|>", "analysisWe ", "好的。\n<think>", "<think>a<think>b</think>", "<think>`</think>`"} {
		var f Filter
		f.Push(lead)
		f.TakeUnread()
		if show, _ := f.Push("等等，"); show != "" || f.TakeUnread() != "等等，" {
			t.Errorf("behind %q the text can't be read, shown %q", lead, show)
		}
	}
	var f Filter
	f.Assume()
	if f.Push("等等，"); f.TakeUnread() != "等等，" {
		t.Error("assumed reasoning can't be read")
	}
}
