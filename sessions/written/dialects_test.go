package written

import (
	"slices"
	"strings"
	"testing"
)

// answer is the text of a model, and the part that is kept: one of several results with | between them.
type answer struct{ in, want string }

// check pushes answers in pieces of several sizes.
func check(t *testing.T, answers []answer) {
	t.Helper()
	for _, a := range answers {
		for _, n := range []int{1, 7, 1000} {
			f := New(config)
			through(t, f, a.in, n)
			got := strings.TrimSpace(result(f))
			if got != strings.TrimSpace(a.want) && !slices.Contains(strings.Split(a.want, "|"), got) {
				t.Errorf("of %q in pieces of %d\n got %q\nwant %q", a.in, n, got, a.want)
			}
		}
	}
}

// The dialects of more models, also where the server left a part of their marks.
func TestCallsInMoreDialects(t *testing.T) {
	t.Parallel()
	const (
		S    = `CALL memory_search {"query":"发布会"}`
		G    = "[unusable_call]"
		ant  = "<ant" + "ml:"
		eant = "</ant" + "ml:"
	)
	check(t, []answer{
		{"<function=memory_search>\n<parameter=query>\n发布会\n</parameter>\n</function>\n</tool_call>", S},
		{"<tool_call>\n<tool_call>\n" + asJSON + "\n</tool_call>", S},
		{"<tool_call>{'name': 'memory_search', 'arguments': {'query': '发布会'}}</tool_call>", S + "|" + G},
		{"<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"memory_search\">\n<｜DSML｜parameter name=\"query\" string=\"true\">发布会</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>", S},
		{"<|tool_calls_begin|><|tool_call_begin|>function<|tool_sep|>memory_search\n```json\n{\"query\":\"发布会\"}\n```<|tool_call_end|><|tool_calls_end|>", S},
		{"memory_search\n{\"query\":\"发布会\"}", S},
		{"好的。\nmemory_search\n{\"query\":\"发布会\"}", "好的。 " + S},
		{"<tool_call>memory_search\n<arg_key>query</arg_key>\n<arg_value>发布会</arg_value>", S},
		{"[memory_search(query=\"发布会\")]", S},
		{`{"type": "function", "name": "memory_search", "parameters": {"query":"发布会"}}`, S},
		{"<|python_start|>[memory_search(query=\"发布会\")]<|python_end|>", S},
		{"[TOOL_CALLS]memory_search[CALL_ID]abc123def[ARGS]{\"query\":\"发布会\"}", S},
		{"[TOOL_CALLS][{\"name\":\"memory_search\",\"arguments\":{\"query\":\"发布会\"},\"id\":\"abcdefghi\"}]</s>", S},
		{"<|tool_call_begin|>functions.memory_search:0<|tool_call_argument_begin|>{\"query\":\"发布会\"}<|tool_call_end|>", S},
		{"<|tool_calls_section_begin|><|tool_call_begin|>memory_search<|tool_call_argument_begin|>{\"query\":\"发布会\"}<|tool_call_end|><|tool_calls_section_end|>", S},
		{"<|start|>assistant<|channel|>commentary to=functions.memory_search <|constrain|>json<|message|>{\"query\":\"发布会\"}", S + "|" + S + " [template]"},
		{"commentary to=functions.memory_search json{\"query\":\"发布会\"}", S},
		{"assistantcommentary to=functions.memory_search json{\"query\":\"发布会\"}", S},
		{"<|START_ACTION|>[{\"tool_call_id\":\"0\",\"tool_name\":\"memory_search\",\"parameters\":{\"query\":\"发布会\"}}]<|END_ACTION|>", S},
		{"```tool_call\n" + asJSON + "\n```", S},
		{"<start_function_call>call:memory_search{query:<escape>发布会<escape>}<end_function_call>", S + "|" + G},
		{ant + "function_calls>\n" + ant + "invoke name=\"memory_search\">\n" + ant + "parameter name=\"query\">发布会" + eant + "parameter>\n" + eant + "invoke>\n" + eant + "function_calls>", S},
		{"<steptml:invoke name=\"memory_search\"><steptml:parameter name=\"query\">发布会</steptml:parameter></steptml:invoke>", S + "|" + G},
		{"<seed:tool_call><function=memory_search><parameter=query>发布会</parameter></function></seed:tool_call>", S},
		{"<tool_calls>\n<tool_call>memory_search<tool_sep>\n<arg_key>query</arg_key>\n<arg_value>发布会</arg_value>\n</tool_call>\n</tool_calls>", S},
		{"<tool_calls>[" + asJSON + "]</tool_calls>", S},
		{"<TOOLCALL>[" + asJSON + "]</TOOLCALL>", S},
		{"<function_calls>\nmemory_search(query=\"发布会\")\n</function_calls>", S},
		{"<|tool_call_start|>[memory_search(query=\"发布会\")]<|tool_call_end|>", S},
		{"memory_search(query=\"发布会\")", S},
		{"我查一下。\nmemory_search(query=\"发布会\")", "我查一下。 " + S},
		{"<tools>\n" + asJSON + "\n</tools>", S},
		{"<tool_call>\n" + asJSON + "\n</tool_call>\n<tool_response>\n在周五\n</tool_response>\n在周五。", S},
		{"<tool_call>\n{\"name\":\"memory_search\",\"arguments\":{\"query\":\"发布会\",}}\n</tool_call>", G},
		{"好的。<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>memory_se", "好的。 " + G},
		{"好的。\n<tool_ca", "好的。|好的。 [template]|好的。 " + G},
		{"好的。<|tool_calls_sec", "好的。|好的。 [template]|好的。 " + G},
		{"好的。<｜tool▁cal", "好的。|好的。 [template]|好的。 " + G},
	})
}

// Marks that a stream ended within, ends of turns, and names before an answer.
func TestMoreMarksAndNames(t *testing.T) {
	t.Parallel()
	const G = "[unusable_call]"
	check(t, []answer{
		{"周五三点<|im_en", "周五三点|周五三点 [template]"},
		{"周五三点<｜end▁of▁sen", "周五三点|周五三点 [template]"},
		{"周五三点<end_of_tu", "周五三点|周五三点 [template]"},
		{"周五三点 [/INST]", "周五三点 [template]"},
		{"周五三点<|im_end|><|im_start|>user<|im_sep|>好的", "周五三点 [template]"},
		{"周五三点<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n周五三点", "周五三点 [template]"},
		{"assistant\n\n周五三点", "周五三点 [label]|周五三点 [template]"},
		{"周五三点<|eom|>", "周五三点 [template]"},
		{"周五三点<|message_end|>", "周五三点 [template]"},
		{"周五三点[EOS]", "周五三点 [template]"},
		{"周五三点<|tool_response>", "周五三点 [template]"},
		{"周五三点<pad><pad>", "周五三点 [template]"},
		{"周五三点[PAD]", "周五三点 [template]"},
		{"周五三点<unk>", "周五三点 [template]"},
		{"Ebb（机器人）：周五三点", "周五三点 [label]"},
		{"Ebb：\n周五三点", "周五三点 [label]"},
		{"Assistant：周五三点", "周五三点 [label]"},
		{"[15:04] Ebb: 周五三点", "周五三点 [label]"},
		{"Ebb - 周五三点", "周五三点 [label]|Ebb - 周五三点"},
		{"@Ebb: 周五三点", "周五三点 [label]"},
		{"Ebb(robot)：周五三点", "周五三点 [label]"},
		{"「Ebb」：周五三点", "周五三点 [label]"},
		{"周五三点\n\n[张三(u2)]: 好的", "周五三点 [other_speaker]"},
		{"周五三点\n\n张三(u2):好的", "周五三点 [other_speaker]"},
		{"周五三点\n\n张三(u2)：\n好的", "周五三点 [other_speaker]"},
		{"周五三点\n---\n张三(u2): 好的", "周五三点\n--- [other_speaker]|周五三点 [other_speaker]"},
	})
}

// Words like those of calls, templates and speakers are content.
func TestWordsLikeMarksAreKept(t *testing.T) {
	t.Parallel()
	var kept []answer
	for _, text := range []string{
		"用 {{ .Name }} 和 <no value>。", "std::vector<std::pair<int,int>> v; if (a<b || c<|d)", "HTML 的 <s> 标签是删除线，</s> 结束。",
		"cat <<EOF\n你好\nEOF", "F# 有 <| 运算符，例如 printfn <| x", "F# 有 <|", "[INST] 是 Llama 2 的标记", "Action: 开会\nAction Input: 无",
		"functions.php:12 {\"a\":1}", "用户：张三\n助手：李四", "张三(u2): 接口；李四(u3): 测试", "张三(u2)：接口，李四(u3)：测试", "结论：\n\n李四(u3): 负责测试",
		"谁负责：\n1. 张三(u2)：接口\n2. 李四(u3)：测试", "[2026-11-25 15:04] 系统上线\n[2026-11-25 16:00] 回滚",
		"```\n<tool_call>\n" + asJSON + "\n</tool_call>", "~~~\n<tool_call>\n" + asJSON + "\n</tool_call>\n~~~\n如上",
		"Jinja 里写 `{% if message.role == 'user' %}<|im_start|>user{% endif %}`",
		"Qwen 用 <|im_start|>user\n你好<|im_end|>\n<|im_start|>assistant\n这样的格式", "MSBuild 用 <invoke name=\"build\"> 标签", "<user>张三</user>", "Option<s> 和 Vec<u8>",
		"<tool_call> 是自定义标签，里面写 {\"a\":1} 就行", "未知词是 <unk>，填充是 <pad>。", "BERT 有 [PAD]、[CLS] 和 [SEP]", "<eos> 是结束",
		"| 任务 | 状态 | 备注 |\n|---|---|---|\n" + strings.Repeat("| 未开始 | 未开始 | 未开始 |\n", 60),
		strings.Repeat("0,0,0,0\n", 100), strings.Repeat("la la la, ", 20), strings.Repeat("🎉", 60), strings.Repeat("\n---\n", 20), "|" + strings.Repeat("---|", 80),
		strings.Repeat("00 00 00 00 00 00 00 00\n", 40), "memory_search 是搜索记忆的工具", "memory_search(query) 接受一个参数", "用法：memory_search(query=\"x\")，它返回事实",
		"[memory_search] 工具可以搜索", "Human: 人类\nRobot: 机器人", "assistant 是英文单词", "assistant\n是助手的意思，user\n是用户的意思。", "User: root\nPassword: 见保险箱",
		"tools 的格式是 <tools></tools>", "commentary to=functions 是 gpt-oss 的写法", "结尾写 <tool", "AI: 人工智能；ML: 机器学习", "AI: 人工智能\nML: 机器学习",
		"「Ebb」是机器人的名字", "@张三 周五三点", "<Ebb> 是标签", "for i in range(3): print(i)\nmemory = 3", "<tools.json> 里有配置",
		"函数 remind(when, text) 的说明：\n- when：时间\n- text：内容", "周五三点 [见附件]", "cmd </s 是不带参数的", "a <= b && c >= d",
		"Ebb (开源项目) 是一个机器人",
		"时间：\n[15:04] 张三(u2): 上线\n[15:30] 李四(u3): 回滚",
	} {
		kept = append(kept, answer{text, strings.TrimSpace(text)})
	}
	check(t, kept)
}
