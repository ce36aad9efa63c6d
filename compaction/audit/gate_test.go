package audit

import (
	"fmt"
	"strings"
	"testing"

	"ebb/compaction/compactiontest"
	"ebb/sessions"
	"ebb/sessions/llm"
	"ebb/sessions/reasoning"
)

const (
	requestZH = "你在整理一段群聊的历史，供助手以后接着聊时参考。\n## 进行中的任务\n## 已完成\n## 待办与承诺\n写明谁说的、谁决定的、谁负责，编号和金额照原文抄写。\n"
	requestEN = "You are condensing part of a group chat for an assistant.\n## Work in progress\n## Done\n## To do\nSay who said, decided and owns what; copy ids as they stand.\n"

	summaryZH = "## 进行中的任务\n李娜在做支付网关的升级，张伟负责回滚方案。\n## 已完成\n联调已经结束，测试组确认没有阻塞的问题。\n## 待办与承诺\n周四前张伟给出回滚步骤，工单 OPS-12。"
	summaryEN = "## Work in progress\nLi Na upgrades the payment gateway, Alex owns the rollback plan.\n## Done\nIntegration tests are over; QA found nothing that blocks.\n## To do\nAlex writes down the rollback steps by Thursday, ticket OPS-12."
)

// talkZH and talkEN are long conversations, each line said once.
func talkZH() []sessions.Event {
	return chatter("今天轮到%s来说明%s的情况，%s已经知道了，大家没有别的意见", []string{"李娜", "张伟", "王芳", "赵敏", "陈晨"}, []string{"登录", "支付", "报表", "短信", "缓存", "网关"})
}

func talkEN() []sessions.Event {
	return chatter("today %s explains how the %s behaves, and %s has heard about it before", []string{"Anna", "Bob", "Carol", "Dave", "Erin"}, []string{"login", "payment", "report", "message", "cache", "gateway"})
}

func chatter(form string, who, what []string) []sessions.Event {
	var out []sessions.Event
	for i, a := range who {
		for j, b := range what {
			out = append(out, sessions.Event{Seq: int64(len(out) + 1), Role: sessions.RoleUser, Content: fmt.Sprintf(form, a, b, who[(i+j+1)%len(who)])})
		}
	}
	return out
}

func contents(events []sessions.Event) string {
	var out []string
	for _, e := range events {
		out = append(out, e.Content)
	}
	return strings.Join(out, "\n")
}

// P60: every rule of the gate rejects what it is for, and passes what only looks like it, in Chinese and English.
func TestGate(t *testing.T) {
	t.Parallel()
	zh, en := ReplyContext{Source: 3000, Events: talkZH(), Request: requestZH, Language: "zh"}, ReplyContext{Source: 3000, Events: talkEN(), Request: requestEN, Language: "en"}
	plain := func(text string) llm.Response { return llm.Response{Text: text, Finish: llm.FinishStop} }
	sized := func(c ReplyContext, source, got int) ReplyContext { c.Source, c.Got = source, got; return c }
	for _, c := range []struct {
		rule    string
		in      ReplyContext
		bad, ok llm.Response
		okIn    *ReplyContext // context of the near miss in another check
	}{
		{rule: "empty", in: zh, bad: plain(" \n\t"), ok: plain(summaryZH + "\n\n")},
		{rule: "thinking only", in: zh, bad: plain("<think>先看看\n谁说了什么</think>"), ok: plain("<think>想一想</think>" + summaryZH)},
		{rule: "open thinking", in: en, bad: plain("<thinking>let me see who said"), ok: plain("<thinking>hm</thinking>" + summaryEN)},
		{rule: "cut off", in: en, bad: llm.Response{Text: summaryEN}, ok: plain(summaryEN)},
		{rule: "tool call", in: zh, bad: llm.Response{Text: summaryZH, Finish: llm.FinishStop, ToolCalls: []sessions.ToolCall{{ID: "1", Name: "memory_save"}}}, ok: plain(summaryZH + "\n张伟调用了工具 memory_save。")},
		{rule: "refusal", in: zh, bad: plain("抱歉，我无法总结这段对话，因为其中含有我不能处理的内容，请见谅，也请换一个话题再试一次。"), ok: plain("抱歉的是张伟，他昨天没有到会。\n" + summaryZH)},
		{rule: "refusal", in: en, bad: plain("I'm sorry, but I can't help with summarizing this conversation, since it holds content that I must not process."), ok: plain("Sorry, said Alex, who was late.\n" + summaryEN)},
		{rule: "refusal in bold", in: zh, bad: plain("**作为一个语言模型**，我没有办法对上述内容进行归纳，请您谅解并提供其他的内容给我，谢谢您的理解和支持。"), ok: plain("**作为一个临时办法**，回滚由张伟手工做。\n" + summaryZH)},
		{rule: "reply", in: sized(zh, 900, 80), bad: plain("好的，没问题！预算评审会我来安排，会议室已经订好。\n\n请问接下来需要我帮大家安排预算评审会的议程吗？"), ok: plain("好的，以下是摘要：\n" + summaryZH)},
		{rule: "reply", in: sized(en, 900, 80), bad: plain("Sure! The budget review is on Wednesday, the room is booked. Would you like me to send the invitations to everybody now?"), ok: plain("Sure, here is the summary.\n" + summaryEN + "\nBob asked: would you like me to write it down?")},
		{rule: "failure text", in: en, bad: plain("Error generating summary: the upstream model did not answer within the given time, please try again later."), ok: plain("Error: connection refused was traced to the proxy.\n" + summaryEN)},
		{rule: "echo", in: zh, bad: plain(requestZH), ok: plain(summaryZH + "\n- 讨论：<<<transcript ABCDEF，编号和金额照原文抄写")},
		{rule: "echo", in: en, bad: plain("Say who said, decided and owns what; copy ids as they stand.\n" + summaryEN), ok: plain(summaryEN + "\nBob asked who owns what, and to copy ids.")},
		{rule: "transcript", in: zh, bad: plain(`<<<transcript AB` + "\n" + summaryZH), ok: plain(summaryZH + "\n" + `{"n":1}`)},
		{rule: "transcript", in: en, bad: plain(summaryEN + "\n{\"n\":1}\n{\"n\":2}\n{\"n\":3}"), ok: plain(summaryEN + "\n{\"n\":1}\n{\"n\":2}")},
		{rule: "empty template", in: sized(zh, 900, 0), bad: plain("## 进行中的任务\n## 已完成\n## 待办与承诺\n"), ok: plain("## 进行中的任务\n无\n## 已完成\n无，只是互相问好\n## 待办与承诺\n无")},
		{rule: "empty template", in: sized(en, 900, 0), bad: plain("## Work in progress\n\n## Done\n\n## To do\n"), ok: plain("## Work in progress\nnone\n## Done\nnone\n## To do\nnone")},
		{rule: "one text over and over", in: zh, bad: plain(strings.Repeat("好", 600)), ok: plain(summaryZH + strings.Repeat("2 万元、11 万元、7 万元、", 12))},
		{rule: "one text over and over", in: en, bad: plain(strings.Repeat("no ", 500)), ok: plain(summaryEN + "\n" + numbered("FACT-abc-%d REPLY-abc-%d ", 60))},
		{rule: "phrase without end", in: zh, bad: plain(summaryZH + unlike("第%s次，我们周五一起把新版本发布上线", 12)), ok: plain(summaryZH + unlike("第%s次，我们周五一起把新版本发布上线", 8))},
		{rule: "phrase without end", in: en, bad: plain(summaryEN + unlike(" %s said that we ship the new release on friday", 12)), ok: plain(summaryEN + unlike(" %s said that we ship the new release on friday", 8))},
		{rule: "error page", in: zh, bad: plain("<html><body>502 Bad Gateway：上游服务器没有响应</body></html>"), ok: plain(summaryZH + "\n讨论了 <html> 的错误页 502 Bad Gateway。")},
		{rule: "error page", in: en, bad: plain("{\n \"code\": 429, \"message\": \"requests are limited, try again later\"}"), ok: plain(summaryEN + "\n{\"error\": \"limited\"} was what the server said.")},
		{rule: "copied", in: sized(zh, 900, 800), bad: plain(contents(talkZH())), ok: plain(summaryZH)},
		{rule: "copied", in: sized(en, 900, 800), bad: plain(contents(talkEN())), ok: plain(summaryEN)},
		{rule: "copied, but short", in: sized(zh, 900, 800), bad: plain(contents(talkZH())), ok: plain(contents(talkZH()[:6])), okIn: new(sized(zh, 900, 200))},
		{rule: "too short", in: sized(zh, 4000, 12), bad: plain("聊了些工作上的事情。"), ok: plain("聊了些工作上的事情。"), okIn: new(sized(zh, 900, 12))},
		{rule: "too short", in: sized(en, 4000, 12), bad: plain("They talked about work."), ok: plain(summaryEN), okIn: new(sized(en, 60000, 55))},
		{rule: "other language", in: zh, bad: plain(summaryEN), ok: plain(summaryZH + "\nOPS-12, https://a.cn/x, payment-gateway, `make test`, main.go, release/2026-03-05, feature/login-page, config.jsonc, README.md")},
		{rule: "other language", in: en, bad: plain(summaryZH + summaryZH), ok: plain(summaryEN + "\n李娜、张伟、王芳")},
		{rule: "language of another chat", in: zh, bad: plain("Лена обновляет платёжный шлюз, Алексей отвечает за план отката. Проверка закончена, ничего не мешает выпуску. До четверга Алексей опишет шаги отката."), ok: plain(summaryEN), okIn: new(ReplyContext{Source: 3000, Events: talkEN(), Request: requestEN, Language: "zh"})},
		{rule: "mixed language", in: sized(zh, 900, 0), bad: plain(summaryEN), ok: plain("## 已完成\n支付网关 payment gateway 的升级已经 done，rollback 方案由张伟负责，周四前写完 steps，测试组 QA 没有发现 blocking 的问题。")},
		{rule: "twice as long as its source", in: sized(zh, 1500, 3001), bad: plain(summaryZH), ok: plain(summaryZH), okIn: new(sized(zh, 1000, 2950))},
		{rule: "twice as long as its source", in: sized(en, 1500, 3001), bad: plain(summaryEN), ok: plain(summaryEN), okIn: new(sized(en, 1500, 3000))},
	} {
		got := func(r llm.Response, in ReplyContext) error {
			if in.Got == 0 {
				in.Got = compactiontest.Counter().Count(reasoning.Strip(r.Text))
			}
			return CheckReply(r, in)
		}
		if err := got(c.bad, c.in); err == nil {
			t.Errorf("%s (%s): %q passed", c.rule, c.in.Language, c.bad.Text)
		}
		if c.okIn == nil {
			c.okIn = &c.in
			if c.in.Got > 0 {
				c.okIn.Got = compactiontest.Counter().Count(c.ok.Text)
			}
		}
		if err := got(c.ok, *c.okIn); err != nil {
			t.Errorf("%s (%s): %q was rejected: %v", c.rule, c.in.Language, c.ok.Text, err)
		}
	}
}

func numbered(form string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, form, i, i)
	}
	return b.String()
}

// unlike repeats a phrase with something else before it each time.
func unlike(form string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, form, string([]rune("甲乙丙丁戊己庚辛壬癸子丑寅卯")[i])+string(rune('a'+i)))
	}
	return b.String()
}

// P60: a few turns can't be summarized in much fewer words, and need not be.
func TestSummariesOfLittle(t *testing.T) {
	t.Parallel()
	few := []sessions.Event{compactiontest.Said(1, "李娜", "周五发布，订单 A-10086"), compactiontest.Answered(2, "好的，记下了"), compactiontest.Said(3, "张伟", "我负责回滚"), compactiontest.Answered(4, "收到")}
	for _, text := range []string{"李娜：周五发布，订单 A-10086。张伟负责回滚。", "A-10086", "周五发布", "- 李娜：周五发布，订单 A-10086\n- 张伟：我负责回滚", "A-10086, https://a.cn/x, li@a.cn"} {
		c := ReplyContext{Source: 60, Got: compactiontest.Counter().Count(text), Events: few, Request: requestZH, Language: "zh"}
		if err := CheckReply(llm.Response{Text: text, Finish: llm.FinishStop}, c); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// For any answer of a model, the gate has a result too, and the same one for the text that it would store.
func FuzzCheckSummary(f *testing.F) {
	for _, s := range []string{summaryZH, summaryEN, "<think>", "{\"error\":1}", "#", "\xff", "抱歉", "<<<", strings.Repeat("a ", 700)} {
		f.Add(s, s, 2000)
	}
	f.Fuzz(func(t *testing.T, text, source string, tokens int) {
		c := ReplyContext{Source: tokens, Got: len(text) / 3, Events: []sessions.Event{compactiontest.Said(1, "李娜", source)}, Previous: source, Request: requestZH, Language: "zh"}
		err := CheckReply(llm.Response{Text: text, Finish: llm.FinishStop}, c)
		clean := reasoning.Strip(text)
		if clean == "" && err == nil {
			t.Errorf("%q, which is empty, passed", text)
		}
		if again := CheckReply(llm.Response{Text: clean, Finish: llm.FinishStop}, c); reasoning.Strip(clean) == clean && (again == nil) != (err == nil) {
			t.Errorf("%q: %v, and cleaned: %v", text, err, again)
		}
	})
}
