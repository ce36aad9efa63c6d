package demo

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"ebb/bot/dingtalk/dingtalktest"
	"ebb/bot/openai/openaitest"
	"ebb/cmd/lab/rig"
	"ebb/sessions"
)

const (
	demoGroup      = sessions.ConversationID("cidEbbDemoGroup==")
	demoGroupTitle = "支付网关 2.4 发布"
	demoBotName    = "Ebb"
)

var you = rig.Person{ID: "u-you", Name: "你"}

// The person at the terminal is an administrator, for /compact.
func demoPeople() (users []dingtalktest.User, ids []string) {
	for _, p := range []rig.Person{rig.Zhang, rig.Li, rig.Alex, you} {
		users = append(users, dingtalktest.User{StaffID: p.ID, Nick: p.Name, Admin: p == you})
		ids = append(ids, p.ID)
	}
	return users, ids
}

type plantedFact struct {
	rig.Utterance
	proof string // words of its recall
}

var plantedFacts = []plantedFact{
	{rig.Utterance{Speaker: rig.Zhang, Text: "大家好，支付网关 2.4 的发布日期定在 5 月 20 日晚上八点，窗口两小时。"}, "5 月 20 日"},
	{rig.Utterance{Speaker: rig.Li, Text: "这次发布由我李娜负责，回滚由 Alex 负责。"}, "回滚由 Alex 负责"},
	{rig.Utterance{Speaker: rig.Alex, Text: "供应商的对账订单号是 PO-20260315-7781，5 月 18 日截止。"}, "PO-20260315-7781"},
	{rig.Utterance{Speaker: rig.Zhang, Text: "我偏好先看结论，再看细节，周报一页以内。"}, "先看结论"},
}

var (
	earlyQuestion  = rig.Utterance{Speaker: rig.Alex, Text: "发布是谁负责？"}
	recallQuestion = rig.Utterance{Speaker: rig.Li, Text: "请问支付网关的发布日期定在哪天？"}
	inFlight       = rig.Utterance{Speaker: rig.Zhang, Text: "灰度定在 5 月 19 日上午十点，先放 5% 的流量。"}
	inBetween      = rig.Utterance{Speaker: rig.Li, Text: "联调环境换成 pay-stage-2 了，旧的今晚下线。"}
	afterRestart   = rig.Utterance{Speaker: rig.Alex, Text: "供应商的对账订单号是多少？"}
	checklist      = rig.Utterance{Speaker: rig.Li, Text: "发布当天的步骤，帮我列一下？"}
	longReport     = rig.Utterance{Speaker: rig.Zhang, Text: "把压测报告从头念一遍？"}
	beforeKill     = rig.Utterance{Speaker: rig.Zhang, Text: "回滚由谁负责？"}
)

// The summaries repeat the planted facts, and the beat shows memory alone.
func fromMemory(r openaitest.Request) openaitest.Reply {
	messages := make([]openaitest.Message, len(r.Messages))
	for i, m := range r.Messages {
		m.Content = summaryBlock.ReplaceAllString(m.Content, "")
		messages[i] = m
	}
	r.Messages = messages
	return openaitest.Persona(r)
}

var summaryBlock = regexp.MustCompile(`(?s)<<<summary .*?\nsummary [^\n]*>>>\n?`)

// The delay lets a signal come first.
func answerSlowly(d time.Duration) func(openaitest.Request) openaitest.Reply {
	return func(r openaitest.Request) openaitest.Reply { return openaitest.Persona(r).After(d) }
}

// People see the answer to the checklist grow.
const (
	checklistOpening = "**先说结论**"
	checklistAnswer  = checklistOpening + "：八点开始，十点前结束。\n\n" +
		"1. 19:30 冻结代码，核对变更单\n2. 20:00 先放 5% 的流量，看错误率\n3. 20:30 放到 50%，核对对账单\n" +
		"4. 21:00 全量，观察一小时\n5. 异常时按预案回滚，先回滚再排查"
)

func scriptChecklist() openaitest.Script {
	return openaitest.When(matchQuestion(checklist), openaitest.Text(checklistAnswer).Slow(100*time.Millisecond)).Times(1)
}

const (
	reportOpening = "压测报告第一节：测试环境与方法。本次压测用了三台八核机器，"
	cutShort      = "（已停止）"
)

func scriptReport() openaitest.Script {
	return openaitest.When(matchQuestion(longReport), openaitest.Text(reportOpening+reportOpening).QuietAfter(3)).Times(1)
}

// The report is long enough to be stopped.
func scriptReading() []openaitest.Script {
	read := func(words, intro, line string) openaitest.Script {
		var text strings.Builder
		text.WriteString(intro + "\n")
		for tps := 100; tps <= 1500; tps += 100 {
			fmt.Fprintf(&text, line, tps, 20+tps*tps/80_000, tps/100)
		}
		return openaitest.When(rig.MatchQuestion(words), openaitest.Text(text.String()).Slow(120*time.Millisecond))
	}
	return []openaitest.Script{
		read("压测报告", reportOpening+"逐级加压，结果如下。", "\n- 单机 %d TPS：平均响应 %d 毫秒，错误率 0.%02d%%"),
		read("load test report", "Load test report, part one: three machines with eight cores, under a growing load.",
			"\n- %d TPS a machine: %d ms on average, error rate 0.%02d%%"),
	}
}

var askingRE = regexp.MustCompile(`(?i)\b(?:what|when|who|which|how)\b`)

// scriptEnglish answers English questions about what the people of the story said in Chinese. The model has to have read it in the request, or
// says what it says to any question.
func scriptEnglish() (scripts []openaitest.Script) {
	for _, a := range []struct{ words, proof, answer string }{
		{`order number`, "PO-20260315-7781", "the supplier's order number is PO-20260315-7781, and its deadline is May 18."},
		{`roll(?:s|ed|ing)?[- ]?back`, "回滚由 Alex 负责", "Alex is responsible for the rollback."},
		{`who.*(?:responsible|in charge|release)`, "发布由我李娜负责", "Li Na is responsible for the release, and Alex for the rollback."},
		{`canary|gradual|rollout`, "灰度定在 5 月 19 日", "the gradual rollout begins on May 19 at 10 am, with 5% of the traffic."},
		{`release|go live|launch`, "5 月 20 日", "release 2.4 of the payment gateway is on May 20 at 8 pm, and takes two hours."},
		{`zhang wei.*(?:prefer|like|want)`, "先看结论", "Zhang Wei prefers the conclusion first, then the details, and weekly reports of one page."},
	} {
		words := regexp.MustCompile(`(?i)` + a.words)
		asked := func(r openaitest.Request) bool {
			question := rig.LastQuestion(r)
			return askingRE.MatchString(question) && words.MatchString(question) && strings.Contains(r.Text(), a.proof)
		}
		scripts = append(scripts, openaitest.When(asked, openaitest.Text("From memory: "+a.answer)))
	}
	return scripts
}

func neverAnswer(openaitest.Request) openaitest.Reply { return openaitest.Hang() }

func matchQuestion(u rig.Utterance) openaitest.Matcher { return rig.MatchQuestion(u.Text) }
