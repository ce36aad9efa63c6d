package written

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// config is a group of three with two tools.
var config = Config{
	Turn: true, Self: "Ebb", Speakers: []string{"张三(u2)", "李四(u3)", "客户［外部］"}, Askers: []string{"张三(u2)"},
	Tools: []Tool{
		{"memory_search", map[string]any{"properties": map[string]any{"query": map[string]any{"type": "string"}, "limit": map[string]any{"type": "integer"}}}},
		{"remind", nil},
	},
}

// through pushes a text in pieces of n bytes and returns the shown text.
func through(t interface{ Fatalf(string, ...any) }, f *Filter, text string, n int) string {
	return pushed(t, f, text, n, false)
}

// toLimit is through for a model that ran to its limit of tokens.
func toLimit(t interface{ Fatalf(string, ...any) }, f *Filter, text string, n int) string {
	return pushed(t, f, text, n, true)
}

func pushed(t interface{ Fatalf(string, ...any) }, f *Filter, text string, n int, limit bool) string {
	shown := ""
	add := func(s string, undo bool) {
		if undo {
			shown = ""
		}
		shown += s
	}
	for s := text; s != ""; {
		k := min(n, len(s))
		add(f.Push(s[:k]))
		s = s[k:]
	}
	add(f.Finish(limit))
	if shown != f.Text() {
		t.Fatalf("of %q, %q is shown and %q kept", text, shown, f.Text())
	}
	return shown
}

// result describes an answer: its words, calls and corrections.
func result(f *Filter) string {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(f.Text()))
	for _, c := range f.Calls() {
		fmt.Fprintf(&b, " CALL %s %s", c.Name, c.Arguments)
	}
	for _, k := range f.Found() {
		if k != Called {
			fmt.Fprintf(&b, " [%s]", k)
		}
	}
	return b.String()
}

const (
	search = ` CALL memory_search {"query":"发布会"}`
	asJSON = `{"name":"memory_search","arguments":{"query":"发布会"}}`
)

// Models write calls as text in the form of their template, which the server did not read.
func TestCallsAsText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"好的。\n<tool_call>\n" + asJSON + "\n</tool_call>":                                       "好的。" + search,
		"<tool_call>" + asJSON:                                                                 search[0:0] + search,
		"<tool_call>\n" + asJSON + "\n</tool_call>\n\n查到了：在周五。":                                search,
		"<tool_call>\n" + asJSON + "\n</tool_call>\n<tool_call>\n" + asJSON + "\n</tool_call>": search + search,
		"<tool_call>\n<function=memory_search>\n<parameter=query>\n发布会\n</parameter>\n<parameter=limit>\n3\n</parameter>\n</function>\n</tool_call>": ` CALL memory_search {"limit":3,"query":"发布会"}`,
		"<function=memory_search><parameter=query>发布会</parameter></function>":                                                                        search,
		`<function=memory_search>{"query":"发布会"}</function>`:                                                                                         search,
		"<tool_call>memory_search\n<arg_key>query</arg_key>\n<arg_value>发布会</arg_value>\n</tool_call>":                                               search,
		"<|tool_call|>[" + asJSON + "]<|/tool_call|>":                                                                                                search,
		"[TOOL_CALLS] [" + asJSON + "]":                  search,
		`[TOOL_CALLS]memory_search[ARGS]{"query":"发布会"}`: search,
		"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>memory_search\n```json\n{\"query\":\"发布会\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>":                     search,
		"我查一下<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>memory_search<｜tool▁sep｜>{\"query\":\"发布会\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>":                                         "我查一下" + search,
		"<|tool_calls_section_begin|><|tool_call_begin|>functions.memory_search:0<|tool_call_argument_begin|>{\"query\":\"发布会\"}<|tool_call_end|><|tool_calls_section_end|>": search,
		"functions.memory_search:0 {\"query\":\"发布会\"}":                                                                              search,
		"好的。\nfunctions.memory_search:0\n{\"query\":\"发布会\"}":                                                                        "好的。" + search,
		`<|python_tag|>{"name": "memory_search", "parameters": {"query":"发布会"}}<|eom_id|>`:                                           search,
		`<|python_tag|>memory_search.call(query="发布会")`:                                                                              search,
		"<function_calls>\n<invoke name=\"memory_search\">\n<parameter name=\"query\">发布会</parameter>\n</invoke>\n</function_calls>": search,
		"<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"memory_search\">\n<｜DSML｜parameter name=\"query\" string=\"true\">发布会</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>": search,
		"<|channel|>commentary to=functions.memory_search <|constrain|>json<|message|>{\"query\":\"发布会\"}<|call|>":                                                                       search,
		"```json\n" + asJSON + "\n```": search,
		asJSON:                         search,
		"[" + asJSON + "]":             search,
		"好的。\n" + asJSON:               "好的。" + search,
		`{"type":"function","function":{"name":"memory_search","arguments":"{\"query\":\"发布会\"}"}}`: search,
		`{"tool_calls":[{"function":{"name":"memory_search","arguments":{"query":"发布会"}}}]}`:        search,
		"```tool_code\nprint(memory_search(query=\"发布会\"))\n```":                                    search,
		"我查一下。\nAction: memory_search\nAction Input: {\"query\":\"发布会\"}\nObservation: 周五":          "我查一下。" + search,
		"✿FUNCTION✿: memory_search\n✿ARGS✿: {\"query\":\"发布会\"}\n✿RESULT✿: 周五":                      search,
		`{"action":"memory_search","action_input":{"query":"发布会"}}`:                                 search,
		`<function name="memory_search">{"query":"发布会"}</function>`:                                 search,
		"<tool_code>\nprint(memory_search(query=\"发布会\"))\n</tool_code>":                            search,
		"<|action_start|><|plugin|>\n" + asJSON + "<|action_end|>":                                  search,
		"<|function_call|>" + asJSON: search,
		"<functioncall> " + asJSON:   search,
		// without an offered tool, or cut
		"Action: web_search\nAction Input: {\"query\":\"发布会\"}":                                       "Action: web_search\nAction Input: {\"query\":\"发布会\"}",
		"Action: memory_search\nAction Input: {\"query":                                               "[unusable_call]",
		"好的。\n<tool_call>\n{\"name\":\"web_search\",\"arguments\":{\"query\":\"发布会\"}}\n</tool_call>": "好的。 [unusable_call]",
		"好的。\n<tool_call>\n{\"name\":\"memory_search\",\"argum":                                       "好的。 [unusable_call]",
		"<tool_call>\n{\"name\":\"memory_search\",\"arguments\":[1]}\n</tool_call>\n周五。":              "周五。 [unusable_call]",
		`{"name":"memory_search","argum`:                                                              "[unusable_call]",
		// people ask about calls
		"写法：\n```\n<tool_call>\n" + asJSON + "\n</tool_call>\n```\n以上。":            "写法：\n```\n<tool_call>\n" + asJSON + "\n</tool_call>\n```\n以上。",
		"标签 `<tool_call>` 和 `[TOOL_CALLS]` 是 Qwen 和 Mistral 的。":                    "标签 `<tool_call>` 和 `[TOOL_CALLS]` 是 Qwen 和 Mistral 的。",
		"标签 <tool_call> 是 Qwen 的，<tool_call> tags too，[TOOL_CALLS] 是 Mistral 的。":   "标签 <tool_call> 是 Qwen 的，<tool_call> tags too，[TOOL_CALLS] 是 Mistral 的。",
		"写法是 <function=name> 和 <|python_tag|>foo\n这样的标签。":                          "写法是 <function=name> 和 <|python_tag|>foo\n这样的标签。",
		"例子：\n```json\n" + asJSON + "\n```":                                        "例子：\n```json\n" + asJSON + "\n```",
		"```json\n" + asJSON + "\n```\n这是一个例子。":                                    "```json\n" + asJSON + "\n```\n这是一个例子。",
		"```json\n{\"name\":\"get_weather\",\"arguments\":{\"city\":\"上海\"}}\n```": "```json\n{\"name\":\"get_weather\",\"arguments\":{\"city\":\"上海\"}}\n```",
		"{\"name\":\"张三\",\"age\":3}":                                              "{\"name\":\"张三\",\"age\":3}",
		"{\"type\":\"object\",\"proper":                                            "{\"type\":\"object\",\"proper",
		"functions.foo:0 {}":                                                       "functions.foo:0 {}",
		"a < b，[1] 和 [TOOL":                                                        "a < b，[1] 和 [TOOL",
	} {
		f := New(config)
		through(t, f, in, 7)
		if got := result(f); strings.TrimSpace(got) != strings.TrimSpace(want) {
			t.Errorf("of %q\n got %q\nwant %q", in, got, want)
		}
	}
}

// A model repeats the form of its request: names, times, and the lines of other people.
func TestNamesAndOtherSpeakers(t *testing.T) {
	t.Parallel()
	list := "张三(u2): 负责接口\n李四(u3): 负责测试"
	for in, want := range map[string]string{
		"Ebb: 周五三点":                        "周五三点 [label]",
		"ebb：周五三点":                         "周五三点 [label]",
		"**Ebb**: 周五三点":                    "周五三点 [label]",
		"Ebb(robot): 周五三点":                 "周五三点 [label]",
		"Ebb (robot): 周五三点":                "周五三点 [label]",
		"[Ebb] 周五三点":                       "周五三点 [label]",
		"【ebb】：周五三点":                       "周五三点 [label]",
		"[Ebb](https://ebb.example) 是一个助手": "[Ebb](https://ebb.example) 是一个助手",
		"[Ebb 的文档] 见上":                     "[Ebb 的文档] 见上",
		"assistant: 周五三点":                  "周五三点 [label]",
		"张三(u2): 周五三点":                     "周五三点 [label]",
		"[15:04] 周五三点":                     "周五三点 [label]",
		"[2026-11-25 15:04 Wednesday CST; group 产品群]\nEbb: 周五三点": "周五三点 [label]",
		"[引用 张三(u2): 几点]\n周五三点":                                  "周五三点 [label]",
		"周五三点\n\n张三(u2): 好的，那就这样定了":                              "周五三点 [other_speaker]",
		"周五三点\n张三(u2): 好的\nEbb: 不客气":                             "周五三点 [other_speaker]",
		"周五三点\n\n李四（u3）：好的":                                      "周五三点 [other_speaker]",
		"周五三点\n\n李四 (u3): 好的":                                    "周五三点 [other_speaker]",
		"周五三点\n\n李四 （u3）：好的":                                     "周五三点 [other_speaker]",
		"周五三点\n\n[15:04] 张三(u2): 好的":                             "周五三点 [other_speaker]",
		"周五三点\n\n[15:04] 李四提问":                                   "周五三点\n\n[15:04] 李四提问",
		"周五三点\n\n客户［外部］: 好的":                                     "周五三点 [other_speaker]",
		"周五三点\n\n[15:04]\n张三(u2): 好的":                            "周五三点 [other_speaker]",
		"周五三点\n\n[2026-11-25 15:04 Wednesday CST]\n好的":           "周五三点 [other_speaker]",
		"周五三点<|im_end|>\n<|im_start|>user\n好的":                   "周五三点 [template]",
		"周五三点<｜end▁of▁sentence｜>":                                "周五三点 [template]",
		"周五三点</s>": "周五三点 [template]",
		"张三(u2): 周五三点\n\n李四(u3): 好的": "周五三点 [label] [other_speaker]",
		// content
		"**张三(u2)**: 负责接口":         "**张三(u2)**: 负责接口",
		"周五三点\n\n**张三(u2)**: 负责接口": "周五三点\n\n**张三(u2)**: 负责接口",
		"张三(u2): 几点\n张三(u2): 好":    "张三(u2): 几点\n张三(u2): 好",
		list:                       list,
		"分工如下：\n\n" + list:         "分工如下：\n\n" + list,
		"## 分工\n" + list:           "## 分工\n" + list,
		"**分工**\n\n" + list:        "**分工**\n\n" + list,
		"分工：\n\n- " + strings.ReplaceAll(list, "\n", "\n- "): "分工：\n\n- " + strings.ReplaceAll(list, "\n", "\n- "),
		"张三: 负责接口\n李四: 负责测试":                                 "张三: 负责接口\n李四: 负责测试",
		"周五三点\n\n张三: 负责接口":                                   "周五三点\n\n张三: 负责接口",
		"原话：\n\n> 张三(u2): 好的":                                "原话：\n\n> 张三(u2): 好的",
		"周五三点\n\n王五(u9): 负责接口":                               "周五三点\n\n王五(u9): 负责接口",
		"张三(u2) 负责接口":                                        "张三(u2) 负责接口",
		"Ebb 是一个助手":                                          "Ebb 是一个助手",
		"记录：\n```\n张三(u2): 好的\n```":                          "记录：\n```\n张三(u2): 好的\n```",
		"[15:04] 开会\n[15:30] 散会":                             "[15:04] 开会\n[15:30] 散会",
		"[1] 见文档":                                            "[1] 见文档",
		"<s>删去</s>周五":                                        "<s>删去</s>周五",
	} {
		f := New(config)
		through(t, f, in, 7)
		if got := result(f); got != want {
			t.Errorf("of %q\n got %q\nwant %q", in, got, want)
		}
	}
	f := New(Config{Turn: true, Self: "Ebb", Speakers: config.Speakers, Askers: config.Speakers})
	if through(t, f, "张三(u2): 周五三点\n\n李四(u3): 在二楼", 5); result(f) != "张三(u2): 周五三点\n\n李四(u3): 在二楼" {
		t.Errorf("an answer to two people is %q", result(f))
	}
	f = New(Config{})
	if through(t, f, "Ebb: <tool_call>"+asJSON+"</tool_call>", 5); result(f) != "Ebb: <tool_call>"+asJSON+"</tool_call>" {
		t.Errorf("text that is no answer is %q", result(f))
	}
}

func numbered(n int, line func(int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(line(i + 1))
	}
	return b.String()
}

// A loop may count.
func TestRepetitionsThatCount(t *testing.T) {
	t.Parallel()
	chinese := func(i int) string {
		digits := []rune("零一二三四五六七八九")
		s := ""
		if i >= 100 {
			s = string(digits[i/100]) + "百"
		}
		if t := i / 10 % 10; t > 0 {
			s += string(digits[t]) + "十"
		} else if i > 100 && i%10 > 0 {
			s += "零"
		}
		if i%10 > 0 {
			s += string(digits[i%10])
		}
		return s
	}
	for name, c := range map[string]struct{ in, want string }{
		"list":     {numbered(900, func(i int) string { return fmt.Sprintf("%d. foo\n", i) }), "1. foo\n2. foo"},
		"sentence": {"开始：" + numbered(900, func(i int) string { return fmt.Sprintf("第%d次尝试连接失败，", i) }), "开始：第1次尝试连接失败，第2次尝试连接失败，"},
		"two":      {numbered(900, func(i int) string { return fmt.Sprintf("- 第 %d 步：等待 %d 秒再试\n", i, 5*i) }), ""},
		"down":     {numbered(900, func(i int) string { return fmt.Sprintf("还剩 %d 次机会。\n", 1000-i) }), ""},
		"Chinese":  {numbered(900, func(i int) string { return "第" + chinese(i) + "次检查没有发现问题。\n" }), "第一次检查没有发现问题。\n第二次检查没有发现问题。"},
		"wide": {numbered(900, func(i int) string {
			return strings.Map(func(r rune) rune { return r - '0' + '０' }, fmt.Sprint(i)) + "、再次确认\n"
		}), "１、再次确认\n２、再次确认"},
	} {
		for _, n := range []int{1, 11, len(c.in)} {
			f := New(config)
			got := through(t, f, c.in+"完", n)
			if !f.Has(Repeated) || !f.Ended() || len(got) > 400 || c.want != "" && strings.TrimSpace(got) != c.want {
				t.Errorf("%s: of %d bytes %d are kept, ended %v: %.80q", name, len(c.in), len(got), f.Ended(), got)
			}
		}
	}
}

// A summary may list identifiers that grow evenly.
func TestListOfIdentifiersInASummary(t *testing.T) {
	t.Parallel()
	list := numbered(900, func(i int) string { return fmt.Sprintf("- 订单 PO-%d 用端口 %d\n", i, 30000+i) })
	if got := through(t, New(Config{}), list, 11); strings.TrimSpace(got) != strings.TrimSpace(list) {
		t.Errorf("of %d bytes %d are kept", len(list), len(got))
	}
}

// A call as text whose arguments do not end is a loop, too, though no part of it is shown.
func TestRepetitionsInCalls(t *testing.T) {
	t.Parallel()
	for _, lead := range []string{"<tool_call>\n{\"name\":\"memory_search\",\"arguments\":{\"query\":\"", "{\"name\":\"memory_search\",\"arguments\":{\"query\":\"", "functions.memory_search:0 {\"query\":\""} {
		f := New(config)
		pushed := 0
		for f.Push("好的。\n" + lead); !f.Ended() && pushed < 20000; pushed += len("等等，") {
			f.Push("等等，")
		}
		if f.Finish(false); !f.Ended() || !f.Has(Repeated) || pushed > 10000 || strings.TrimSpace(f.Text()) != "好的。" || len(f.Calls()) > 0 {
			t.Errorf("%s: ended %v after %d bytes, %q", lead, f.Ended(), pushed, f.Text())
		}
	}
}

// A unit is shown twice. Lines, laughter, tables and code that repeat are content.
func TestRepetitions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"word":      {"周五" + strings.Repeat("发布", 4090), "周五发布发布"},
		"words":     {strings.Repeat("the ", 2000), "the the"},
		"sentence":  {"结论：" + strings.Repeat("我们需要更多的时间来确认。\n", 500), "结论：我们需要更多的时间来确认。\n我们需要更多的时间来确认。"},
		"paragraph": {strings.Repeat(strings.Repeat("很长的一段话，", 3)+"第二句在这里，第三句也在这里，第四句还在这里。\n\n", 80), ""},
		"character": {strings.Repeat("啊", 4000), "啊啊"},
		"line":      {strings.Repeat("=", 40000), "=="},
	} {
		f := New(config)
		got := through(t, f, c.in+"完", 11)
		if !f.Has(Repeated) || !f.Ended() || len(got) > 400 || c.want != "" && strings.TrimSpace(got) != c.want {
			t.Errorf("%s: of %d bytes %d are kept, ended %v: %.80q", name, len(c.in), len(got), f.Ended(), got)
		}
	}
	for name, in := range map[string]string{
		"laughter":  "哈哈哈哈哈哈哈哈哈哈" + strings.Repeat("哈", 200),
		"line":      strings.Repeat("-", 300) + "\n" + strings.Repeat("═", 300),
		"table":     "| 甲 | 乙 |\n|---|---|\n" + strings.Repeat("| 无 | 无 |\n", 40),
		"code":      "```c\nint a[] = {" + strings.Repeat("0, ", 400) + "};\n```",
		"thrice":    strings.Repeat("重要的事情说三遍！", 3),
		"sentences": strings.Repeat("这是很长的回答。", 80),
		"list":      numbered(100, func(i int) string { return fmt.Sprintf("%d. 第 %d 项已经完成\n", i, i) }),
		"weeks": numbered(53, func(i int) string {
			return fmt.Sprintf("### 第 %d 周\n\n- 目标：\n- 负责人：\n- 截止：待定\n- 进度：未开始，风险：无\n\n", i)
		}),
		"codes":    numbered(400, func(i int) string { return fmt.Sprintf("EBB-%03d\n", i) }),
		"counting": numbered(2000, func(i int) string { return fmt.Sprintf("%d, ", i) }),
		"data":     numbered(900, func(i int) string { return fmt.Sprintf("- 第 %d 台服务器用了 %d MB 内存\n", i, i*i%977) }),
		"items": numbered(900, func(i int) string {
			return fmt.Sprintf("%d. 接口 %s 已经完成\n", i, strings.Repeat("甲", i*i%977%7))
		}),
	} {
		f := New(config)
		if got := through(t, f, in, 11); got != in || f.Has(Repeated) {
			t.Errorf("%s: %d bytes of %d are kept", name, len(got), len(in))
		}
	}
}

func partsOfAnswers() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{
		"张三(u2)", "李四(u3)", "李四（u3）", "Ebb", "**", ": ", "：", "\n", "\n\n", " ", "周五三点", "好的。", "[15:04]", "[2026-11-25 15:04 Wednesday CST]", "[引用 张三: 几点]\n",
		"<tool_call>", "</tool_call>", "<tool", "<function=memory_search>", "</function>", "[TOOL_CALLS]", "<｜tool▁calls▁begin｜>", "<|im_end|>", "```", "```json\n", "`", "{", "}",
		asJSON, `{"name":"memory_search","arguments":`, `{"query":"x"}`, "functions.memory_search:0", "Action: memory_search", "Action Input: ", "✿FUNCTION✿: memory_search", "✿ARGS✿: ", "李四 (u3)", "[Ebb]", "【Ebb】", "(x)", "# 分工", "- ", "|", "</s>", "<s>", "<|im_start|>", "<|user|>", "user", "assistant\n", "：", "[INST]", "<｜Assistant｜>", "AI", "AI: ", "**机器人**：", "客户：", "**客户**：", "[15:30] ", "\n  张三(u2): ", "  ", "/", "1", strings.Repeat("啊", 500), strings.Repeat("好的，", 260), "x",
	})
}

// The pieces of an answer do not matter, and at the end people see the text that is stored.
func TestPiecesDoNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		text := strings.Join(rapid.SliceOfN(partsOfAnswers(), 0, 24).Draw(r, "parts"), "")
		whole, cut := New(config), New(config)
		through(r, whole, text, max(len(text), 1))
		through(r, cut, text, rapid.IntRange(1, 40).Draw(r, "bytes"))
		if result(whole) != result(cut) || whole.Text() != cut.Text() {
			r.Fatalf("of %q\nin one piece %q\nin pieces    %q", text, result(whole), result(cut))
		}
	})
}

// The words of an answer without structure are kept as they are.
func TestOrdinaryAnswersAreKept(t *testing.T) {
	t.Parallel()
	part := rapid.SampledFrom([]string{"周五三点", "，", "。\n", "\n\n", "- 张三: 接口\n", "```go\nx := []int{1}\n```\n", "| 甲 | 乙 |\n", "a < b", " [链接](https://a.example)", "`<tool_call>`", "**粗**", "1. 一\n", "{x}"})
	rapid.Check(t, func(r *rapid.T) {
		text := "答：" + strings.Join(rapid.SliceOfN(part, 0, 40).Draw(r, "parts"), "")
		f := New(config)
		if got := through(r, f, text, rapid.IntRange(1, 20).Draw(r, "bytes")); got != text || len(f.Found()) > 0 {
			r.Fatalf("of %q\n got %q, %v", text, got, f.Found())
		}
	})
}

func FuzzFilter(f *testing.F) {
	f.Add("Ebb: 好的。\n<tool_call>\n"+asJSON+"\n</tool_call>\n\n张三(u2): 好", 3)
	f.Add("```json\n"+asJSON+"\n```", 1)
	f.Fuzz(func(t *testing.T, text string, n int) {
		whole, cut := New(config), New(config)
		through(t, whole, text, max(len(text), 1))
		through(t, cut, text, 1+int(uint(n)%64))
		if result(whole) != result(cut) || whole.Text() != cut.Text() {
			t.Errorf("of %q\nin one piece %q\nin pieces    %q", text, result(whole), result(cut))
		}
	})
}
