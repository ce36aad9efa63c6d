package written

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// asked is an answer that is whole as it stands, and its question.
type asked struct{ question, answer string }

// Answers whose form is that of an error of a model are kept whole, in pieces of any size.
func TestLegitimateAnswersAreWhole(t *testing.T) {
	t.Parallel()
	for _, a := range []asked{
		// dialogues
		{"写一段客服对话", "机器人：您好，请问有什么可以帮您？\n\n客户：我想退货\n\n机器人：好的，请提供订单号。"},
		{"写一段客服对话", "**机器人**：您好\n\n**顾客**：我想退货"},
		{"写一段客服对话", "机器人：您好\n\n（停顿）\n\n客户 1：我想退货"},
		{"write a short dialogue", "Bot: Hello!\n\nUser: hi"},
		{"write a short dialogue", "Assistant: Good morning, how can I help you?\nGuest Speaker: I lost my bag."},
		{"写一段对话", "[AI]: 你好\n[人类]: 你好"},
		{"写一句开场白", "AI：你好\nAI：再见"},
		{"写个相声", "助手：今天说一段\n观众：好\n助手：开始"},
		// tasks, minutes and titles
		{"谁负责什么", "助理：小王"},
		{"分工", "助理：整理会议纪要\n\n经理：审批"},
		{"分工", "AI 助理：小王负责\n培训：小李负责"},
		{"昨天各组讨论了什么", "【AI】讨论了大模型\n【运维】讨论了扩容"},
		{"昨天各组讨论了什么", "**AI**：讨论了大模型\n\n**云**：讨论了扩容"},
		{"昨天各组讨论了什么", "【助手】组讨论了排期"},
		{"各产品线的进展", "AI:\n- new model\n\nCloud:\n- price"},
		{"各产品线的进展", "AI：\n\n1. 新模型\n2. 降价\n\n云：\n\n1. 扩容"},
		{"会议结论", "会议结论\n  张三(u2): 接口\n  李四(u3): 测试"},
		{"会议结论", "会议结论\n\t张三(u2)：接口\n\t  周五前\n\t李四(u3)：测试\n以上。"},
		{"会议结论", "结论\n\n    张三（u2）：接口\n\n    李四（u3）：测试"},
		{"会议几点", "AI：周五三点。\n\n备注：带电脑"},
		// dictionaries
		{"人工智能的英文缩写", "AI：Artificial Intelligence"},
		{"robot 怎么翻译", "机器人：robot"},
		{"What is the acronym of artificial intelligence?", "AI: artificial intelligence"},
		{"bot 是什么", "Bot: 机器人"},
		{"助手的英语怎么说", "assistant: 助手"},
		{"解释 assistant 和 user", "assistant\n\n助手\n\nuser\n\n用户"},
		{"把这些词译成英文", "机器人：robot"},
		{"术语表", "AI：人工智能"},
		// prices
		{"价目表", "AI: ¥30/月\nCloud: ¥50/月\nStorage: ¥5/月"},
		{"价目表", "机器人：300 元，含运费\n备件：20 元"},
		// YAML
		{"给一个配置", "bot:\n  token: abc\n  port: 80"},
		{"给一个配置", "AI:\n  owner: li\nOps:\n  owner: wang"},
		{"给一个配置", "bot:\n  - one\n  - two"},
		{"给一个配置", "bot: # 机器人\n  token: abc"},
		{"给一个配置", "assistant:\n\tname: ebb"},
		{"给一个配置", "bot:\n\n  token: abc"},
		{"各组人数", "AI: 9\nOps:10"},
		// timetables
		{"日程", "[09:00] 签到\n[10:00] 开幕"},
		{"日程", "[09:00] 签到\n\n[10:00] 开幕\n\n[11:00] 茶歇"},
		{"日程", "[09:00] 签到\n带身份证\n[10:00] 开幕\n[11:00] 茶歇"},
		{"日程", "AI: 09:00\nCloud: 10:00"},
		{"日程", "[09:00]-[10:00] 签到\n\n[10:00]-[11:00] 开幕"},
		{"今天的告警", "[2026-11-25 15:04] ERROR disk full\n  at node a\n[2026-11-25 15:09] INFO disk ok"},
		// templates
		{"ChatML 的格式", "ChatML 里 <|im_start|>name\n是说话的人"},
		{"ChatML 的格式", "格式如下\n<|im_start|>role\ncontent<|im_end|>"},
		{"ChatML 的格式", "格式如下\n<|im_start|>role\ncontent<|im_end|>\n<|im_start|>role\ncontent<|im_end|>\n就这些"},
		{"ChatML 的格式", "Llama 3 写 <|start_header_id|>role<|end_header_id|>\n\n内容"},
		{"ChatML 的格式", "每轮开头\n<start_of_turn>speaker\n然后是内容"},
	} {
		c := config
		c.Question = a.question
		for _, n := range []int{1, 7, 1000} {
			f := New(c)
			if got := through(t, f, a.answer, n); got != a.answer || len(f.Found()) > 0 {
				t.Errorf("asked %q, in pieces of %d\n got %q %v\nwant %q", a.question, n, got, f.Found(), a.answer)
			}
		}
	}
}

// A word in another one is not asked about, and a label is removed while it is the only one.
func TestOtherQuestionsAreNotAboutALabel(t *testing.T) {
	t.Parallel()
	for _, a := range []asked{
		{"say it again", "AI: 周五三点"}, {"check the email", "AI：周五三点"}, {"the main room?", "AI: 周五三点"}, {"are both coming", "Bot: 周五三点"},
		{"会议几点", "AI: 周五三点\n"}, {"会议几点", "机器人：\n周五三点"}, {"会议几点", "Assistant:\n\n周五三点"},
		{"会议几点", "AI: 周五三点\nhttps://ebb.example"}, {"会议几点", "AI: 周五三点\n15:00 见"}, {"会议几点", "AI: 周五三点\n- 备注：带电脑"}, {"会议几点", "AI: 周五三点\n| 甲: 乙 |"},
	} {
		c := config
		c.Question = a.question
		for _, n := range []int{1, 7, 1000} {
			f := New(c)
			_, behind, _ := strings.Cut(strings.ReplaceAll(a.answer, "：", ":"), ":")
			if got := through(t, f, a.answer, n); strings.ReplaceAll(strings.TrimSpace(got), "：", ":") != strings.TrimSpace(behind) || !f.Has(Labelled) {
				t.Errorf("asked %q: of %q is kept %q %v", a.question, a.answer, got, f.Found())
			}
		}
	}
}

// Long lists of equal rows are answers: calendars, logs, and data with other numbers in each row.
func TestLongListsAreWhole(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	day := func(i int) string { return from.AddDate(0, 0, i).Format(time.DateOnly) }
	after := func(i int, each time.Duration, layout string) string {
		return from.Add(time.Duration(i) * each).Format(layout)
	}
	any := func(i, most int) int { return (i*i*7919 + i*104729) % 99991 % most }
	people := []string{"张三", "李四", "王五"}
	var a, b uint64 = 0, 1
	data := map[string]bool{"prices": true, "tests": true, "INSERT": true, "readings": true, "solutions": true, "scores": true}
	for name, list := range map[string]struct {
		rows int
		row  func(i int) string
	}{
		"rota":          {365, func(i int) string { return "| " + day(i) + " | 值班：张三 | 备注 |" }},
		"rota of three": {365, func(i int) string { return "| " + day(i) + " | 值班：" + people[i%3] + " | 备注 |" }},
		"rota in prose": {365, func(i int) string { return day(i) + " 由张三值班，电话保持畅通，有事在群里说。" }},
		"rota in words": {366, func(i int) string {
			return from.AddDate(0, 0, i).Format("2006年1月2日") + "，白班张三，夜班李四，周末轮休；"
		}},
		"shifts": {90, func(i int) string {
			return "| " + day(i) + " | 白班：09:00-18:00 | 夜班：18:00-次日09:00 | 地点：杭州 |"
		}},
		"tasks with ends": {365, func(i int) string { return "| " + day(i) + " | 截止 " + day(i+30) + " | 待办 |" }},
		"codes":           {600, func(i int) string { return fmt.Sprintf("EBB-%04d 未使用", i) }},
		"hours": {168, func(i int) string {
			return "| " + after(i, time.Hour, "2006-01-02 15:04") + " | 会议室空闲 | 可以预订 |"
		}},
		"hours of a month": {744, func(i int) string {
			return after(i, time.Hour, "2006-01-02 15:04") + " 会议室空闲，可以预订。"
		}},
		"trains": {288, func(i int) string {
			return after(i, 5*time.Minute, "15:04") + " 从杭州东站开往上海虹桥站，二等座"
		}},
		"weeks": {104, func(i int) string {
			return after(i, 7*24*time.Hour, "2006-01-02") + " 项目周会，会议室在三楼，请提前五分钟到场并带上电脑和纪要。"
		}},
		"heartbeats": {150, func(i int) string {
			return after(i, 17*time.Second, "15:04:05") + " INFO heartbeat ok, all services run"
		}},
		"minutes": {120, func(i int) string { return after(i, time.Minute, "2006-01-02 15:04:05") + " INFO health check passed" }},
		"log":     {600, func(i int) string { return after(i, time.Second, "2006-01-02T15:04:05Z") + " GET /healthz 200 ok" }},
		"INSERT": {150, func(i int) string {
			return fmt.Sprintf("INSERT INTO users (id, name, age) VALUES (%d, 'user', %d);", i, 18+any(i, 50))
		}},
		"INSERT in order": {300, func(i int) string {
			return fmt.Sprintf("INSERT INTO users (id, name) VALUES (%d, 'user%d');", i+1, i+1)
		}},
		"prices": {130, func(i int) string {
			return fmt.Sprintf(`{"id": %d, "price": %d, "currency": "CNY", "stock": true, "city": "杭州"}`, i, any(i, 9000))
		}},
		"tests": {130, func(i int) string {
			a, b = b, (a+b)%1000003
			return fmt.Sprintf("assert fib(%d) == %d, \"the value of fib is wrong\"", i, a)
		}},
		"solutions": {200, func(i int) string {
			return fmt.Sprintf("第%d题：答案是选项%d，分值%d分，请各位老师核对之后在系统里登记成绩并通知学生。", i+1, 1+any(i, 4), 2+any(i+7, 4))
		}},
		"readings": {200, func(i int) string {
			return fmt.Sprintf("sensor-hangzhou-west,temperature-celsius,%d.%d,humidity-percent,%d,ok", 20+any(i, 9), any(i+3, 10), 40+any(i+5, 30))
		}},
		"scores": {200, func(i int) string {
			return fmt.Sprintf("| 学号 %d | 数学 %d | 语文 %d | 英语 %d | 备注：无，已经核对 |", 1000+i, any(i, 40)+60, any(i+1, 40)+60, any(i+2, 40)+60)
		}},
		"machines": {256, func(i int) string { return fmt.Sprintf("host-%d.ebb.example IN A 10.0.0.%d ; web server", i, i) }},
	} {
		var text strings.Builder
		for i := range list.rows {
			text.WriteString(list.row(i) + "\n")
		}
		in := text.String()
		for _, lead := range []string{"", "如下：\n\n", "```\n"} {
			f := New(config)
			if got := through(t, f, lead+in, 11); got != lead+in || len(f.Found()) > 0 {
				t.Errorf("%s behind %q: %d bytes of %d are kept, %v", name, lead, len(got), len(lead+in), f.Found())
			}
			// Numbers that nothing foretells are content also where the limit ends them.
			f = New(config)
			if got := toLimit(t, f, lead+in, 11); data[name] && got != lead+in {
				t.Errorf("%s to the limit, behind %q: %d bytes of %d are kept, %v", name, lead, len(got), len(lead+in), f.Found())
			}
		}
	}
}
