package wording

import (
	"strings"
	"testing"

	"ebb/sessions/rules/rulestest"
)

// Each rule of rules.tsv matches its first example, and not its second.
func TestRuleExamples(t *testing.T) {
	t.Parallel()
	rulestest.Examples(t, ruleFile, nil)
}

// The language of a text is that of its words. A text that says little names none, or one that is not clear.
func TestJudge(t *testing.T) {
	t.Parallel()
	for lang, texts := range map[string][]string{
		"zh": {
			"明天几点开会", "帮我看看这个 PR", "请 review 一下 the release notes", "deploy 一下 staging 的 payment-service", "這個功能什麼時候上線？", "請幫我總結一下會議內容",
			"OKR 怎么写", "为什么 kubectl get pods 报错 ImagePullBackOff？", "https://example.com/a看看", "看看 https://example.com/the/of/what", "`git rebase` 是什么意思",
			"这段代码 ```go\nfunc main() { what := is }\n``` 有问题吗", "好的 thanks", "@Zhang Wei 下午三点", "周报", "明天上海天气", "发布会 on Friday", "ok 收到", "hi 大家好", "translate 你好世界",
			"优雅的の设计方案是什么样的", "第3版 v2.1 已发布", "总结 summary",
			"翻译：What is your name", "总结 What is the status of this project", "解释 this is the error", "检查语法 I has a apple", "英文润色: we are going to ship it", "改写 the text is too long", "润色一下：The plan is good.",
			"@Alex 翻译 What is the plan", "《报告》 what is it", "Error: the port is in use\n求解", "The port is in use. 求解决", "the build is failing 怎么办", "the build is failing，怎么办？", "is this the plan 吗",
			"review 一下 the release notes", "please 帮我 check the PR", "马上 check the status", "谢谢 for the help", "周报 what is it", "这个 is the bug", "US API 的文档", "WHO 和 US 的数据", "1. 翻译 What is the plan",
			"https://example.com/a 翻译 what is this", "张伟 is here\n通知 the others", "check 发布计划", "帮我查 order_id=3321",
		},
		"en": {
			"What did 张伟 say about the release?", "Who is 李娜?", "Please summarize 季度报告", "the 发布会 is on Friday", "@张伟 please check", "@李娜 @王芳 can you review this?",
			"when is the meeting", "How do I set up `代码` here?", "Is 张三 on leave today?", "I'm late", "don’t forget the demo", "où est la réunion", "Bonjour, pouvez-vous résumer la réunion",
			"deploy staging build before friday noon", "why?", "see https://example.com/中文 for the details", "[图片] what is this", "> 张伟: 明天开会\nwhat does it mean?", "can you explain ```\n中文\n```",
			"What did 王都都 say?", "Please ask 那英 to review", "what does 请假 mean?", "How do I say 谢谢你 in Chinese?", "How do you say 多少钱 in Chinese?", "translate 你好世界 to English", "Who is 那英?", "What is 请假?", "what does \"怎么办\" mean?",
			"张伟 is here", "张伟's laptop is broken", "李娜, can you review this?", "飞书 is down, what should we do?", "王都都 said that they are late", "张伟 李娜 and 王芳 will join us", "Attendees:\n张伟\n- 李娜\nplease send them the notes",
			"WHAT IS THE STATUS", "PLEASE HELP ME", "WHAT DID 张伟 SAY?", "WHERE IS THE API?", "PLEASE CHECK ERR_TIMEOUT",
		},
		"en?": {"hello", "deploy staging", "Thanks!", "code review", "hi all", "kubectl get pods", "git rebase -i main", "tar -a archive", "good morning", "call mom", "standup", "lgtm"},
		"": {
			"", "👍", "😂😂", "123", "2026-11-26", "https://example.com/path?x=1", "www.example.com", "zhang@example.com", "`rm -rf`", "```go\nfunc main() {}\n```", "```\nwhat is the plan\n",
			"ERR_CONNECTION_REFUSED", "com.foo.Bar", "a.b(c)", "getUserName", "API", "OKR", "v1.2.3", "PR #123", "/etc/hosts", "C:\\Users\\x", "@张三", "@Ebb", "@张三 @李四", "[图片]", "[文件: 季度报告.pdf]",
			"[聊天记录: 支付群]\n> 陈一: 客户的时间字段查询异常", "> 张伟: 明天开会", "明日の会議は何時ですか", "こんにちは", "회의는 몇 시에 시작하나요?", "Когда встреча?", "متى الاجتماع؟", "{\"a\":1}", "...", "+1", "？？",
		},
	} {
		for _, text := range texts {
			got, clear := Judge(text)
			if got == "en" && !clear {
				got = "en?"
			}
			if got != lang {
				t.Errorf("%q is %q, want %q", text, got, lang)
			}
		}
	}
	if got := LanguageOf("ls /etc/hosts", "zh"); got != "en" {
		t.Errorf("code alone is %q, want en", got)
	}
	const pasted = "panic: runtime error: invalid memory address or nil pointer dereference, which is the cause of this\n"
	code := "```\n" + strings.Repeat(pasted, 20) + "```\n"
	for text, lang := range map[string]string{
		strings.Repeat("明天开会，", 1000):                                        "zh",
		strings.Repeat(pasted, 6) + "这个报错怎么解决？":                              "zh",
		strings.Repeat(pasted, 20) + "\n求助\n":                                "zh",
		"这个报错怎么解决？\n" + strings.Repeat(pasted, 20):                           "zh",
		strings.Repeat(pasted, 20):                                           "en",
		strings.Repeat(pasted, 20) + "What did 王都都 say about it?":            "en",
		"What does it mean?\n" + code:                                        "en",
		code + "这个报错怎么解决？":                                                   "zh",
		code + "张伟 is there a way to solve this?":                            "en",
		strings.Repeat(pasted, 8) + strings.Repeat("没有换行", 100) + " the end": "zh",
	} {
		if got, clear := Judge(text); got != lang || !clear {
			t.Errorf("%.40q … %q is %q, want %q", text, text[len(text)-20:], got, lang)
		}
	}
}

// The words of the bot itself have the language that they are written in: a bare command after them takes it.
func TestPhrasesHaveTheirLanguage(t *testing.T) {
	t.Parallel()
	for p, text := range phrases {
		for i, lang := range []string{"zh", "en"} {
			if got, clear := Judge(text[i]); clear && got != lang {
				t.Errorf("phrase %v in %s is judged %s: %q", p, lang, got, text[i])
			}
		}
	}
}
