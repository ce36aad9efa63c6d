package written

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A turn of the model's template has a name in place of a role, or next to one.
func TestTurnsWithNamesAreCut(t *testing.T) {
	t.Parallel()
	const S = "周五三点 [template]"
	check(t, []answer{
		{"周五三点<|im_end|>\n<|im_start|>张三\n好的", S},
		{"周五三点<|im_end|>\n<|im_start|>张三(u2)\n好的", S},
		{"周五三点<|im_end|><|im_start|>user_1\n好的", S},
		{"周五三点<|im_end|>\n<|im_start|>user name=张三\n好的", S},
		{"周五三点<|im_end|>\n<|im_start|>user name=\"zhang\"\n好的", S},
		{"周五三点<|im_end|>\n<|im_start|>user:张三\n好的", S},
		{"周五三点\n<|im_start|>张三(u2)\n好的<|im_end|>", S},
		{"周五三点\n<|im_start|>张三\n好的<|im_end|>", S},
		{"周五三点<|im_start|>user\n好的", S},
		{"周五三点<|eot_id|><|start_header_id|>张三<|end_header_id|>\n\n好的", S},
		{"周五三点\n<start_of_turn>张三(u2)\n好的", S},
		{"周五三点<end_of_turn>\n<start_of_turn>李四\n好的", S},
		{"<|im_start|>Ebb\n周五三点", S},
		{"<|im_start|>assistant name=Ebb\n周五三点<|im_end|>", S},
		{"<|im_start|>ebb\n周五三点", S},
	})
}

// The label of a role before an answer is no part of it, unless the question is about the word, or further labels follow.
func TestLabelsOfRolesAreRemoved(t *testing.T) {
	t.Parallel()
	for _, label := range []string{"AI:", "AI：", "ai: ", "助手：", "助手: ", "Assistant:", "assistant：", "**AI:** ", "**助手**：", "AI助手：", "AI 助手：", "智能助手：", "机器人：", "Bot: ", "AI Assistant: ", "[AI]: ", "[助手]："} {
		check(t, []answer{
			{label + "周五三点", "周五三点 [label]"}, {label + "\n周五三点", "周五三点 [label]"}, {label + "周五三点。\n\n记得带电脑，15:00 开始", "周五三点。\n\n记得带电脑，15:00 开始 [label]"},
			{label + "会议是 15:00。", "会议是 15:00。 [label]"},
		})
	}
	var kept []answer
	for _, text := range []string{
		"AI: 人工智能；ML: 机器学习", "AI: 人工智能\nML: 机器学习", "用户：张三\n助手：李四", "助手：李四\n用户：张三", "AI：人工智能，ML：机器学习", "- AI: 人工智能", "AI 是人工智能", "AI（人工智能）：一门学科",
		"助手是一个角色", "机器人：工业、农业\n无人机：测绘", "Bot API: see the docs", "AIGC: 生成内容", "Botany: 植物学", "[AI](https://ai.example) 的介绍", "`AI:` 是一个标签", "```\nAI: 周五三点\n```", "AI", "助", "A", "B: 第二项", "Assistants: 助理们",
	} {
		kept = append(kept, answer{text, text})
	}
	check(t, kept)
	about := config
	about.Question = "AI 和助手是什么意思？"
	for _, text := range []string{"AI: 人工智能", "助手：帮忙的人"} {
		f := New(about)
		through(t, f, text, 1)
		if got := result(f); got != text {
			t.Errorf("of %q, asked about it, got %q", text, got)
		}
	}
}

// Blanks before a name make no quote of it, except below an item of a list.
func TestIndentedSpeakersAreCut(t *testing.T) {
	t.Parallel()
	const S = "周五三点 [other_speaker]"
	check(t, []answer{
		{"周五三点\n    张三(u2): 好的", S}, {"周五三点\n\n    张三(u2): 好的", S}, {"周五三点\n  张三(u2)：好的", S}, {"周五三点\n\t张三(u2): 好的", S}, {"周五三点\n　张三(u2): 好的", S},
		{"周五三点\n\n  [15:04] 张三(u2): 好的", S}, {"周五三点\n   [张三(u2)]: 好的", S}, {"周五三点\n \n  张三（u2）：好的", S}, {"周五三点\n\n  李四(u3): 好的\n行", S},
	})
	var kept []answer
	for _, text := range []string{
		"负责人：\n  张三(u2): 接口\n  李四(u3): 测试", "1. 接口\n   张三(u2): 后端", "- 接口\n  张三(u2): 后端\n- 测试\n  李四(u3): 全部", "## 分工\n    张三(u2): 接口", "> 张三(u2): 好的", "周五三点\n> 张三(u2): 好的",
		"- 张三(u2): 接口", "周五三点\n- 张三(u2): 接口\n- 李四(u3): 测试", "结论\n  张三 (u2) 负责接口", "```\n    张三(u2): 好的\n```", "周五三点\n    缩进的一行", "**分工**\n  张三(u2): 接口",
	} {
		kept = append(kept, answer{text, text})
	}
	check(t, kept)
}

// dated is a text with a line for each day.
func dated(from time.Time, days, step int, line func(day time.Time, i int) string) string {
	var b strings.Builder
	for i := range days {
		b.WriteString(line(from.AddDate(0, 0, i*step), i))
	}
	return b.String()
}

// The same words with other dates, again and again, are a loop if they go past a year, or to the limit of tokens. Lists of dates are answers.
func TestLoopsOverDates(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC)
	weekday := []string{"日", "一", "二", "三", "四", "五", "六"}
	pastYear := map[string]bool{"days": true, "weeks": true, "weekdays": true, "short days": true}
	for name, text := range map[string]string{
		"days": dated(from, 400, 1, func(d time.Time, _ int) string {
			return d.Format("2006-01-02") + "：张三完成了接口文档的初稿，等待评审。\n"
		}),
		"days in words": dated(from, 400, 1, func(d time.Time, _ int) string {
			return d.Format("2006年1月2日") + "，张三完成了接口文档的初稿并提交评审；"
		}),
		"weeks": dated(from, 400, 7, func(d time.Time, _ int) string {
			return d.Format("1月2日") + "这一周的周报已经按时提交，请大家查看。\n"
		}),
		"weekdays": dated(from, 900, 1, func(d time.Time, _ int) string {
			return d.Format("2006-01-02") + " 周" + weekday[d.Weekday()] + " 站会照常进行\n"
		}),
		"times": dated(from, 400, 1, func(_ time.Time, i int) string {
			return from.Add(time.Duration(i)*5*time.Minute).Format("15:04") + " 系统检查完成，没有发现任何异常情况。\n"
		}),
		"short days": dated(from, 700, 1, func(d time.Time, _ int) string { return d.Format("2006-01-02") + " 值班表已更新。\n" }),
		"English days": dated(from, 300, 1, func(d time.Time, _ int) string {
			return "On 2026-" + d.Format("01-02") + " the team reviewed the interface document again.\n"
		}),
	} {
		for limit, push := range map[bool]func(interface{ Fatalf(string, ...any) }, *Filter, string, int) string{false: through, true: toLimit} {
			f := New(config)
			push(t, f, text, 7)
			cut := f.Has(Repeated) && f.Ended() && len(f.Text()) < 800 && len(f.Text()) > 0
			if want := limit || pastYear[name]; cut != want || !want && f.Text() != text {
				t.Errorf("%s, to the limit %v: kept %d of %d bytes, found %v", name, limit, len(f.Text()), len(text), f.Found())
			}
		}
	}
	for name, text := range map[string]string{
		"all days of a year": dated(from, 365, 1, func(d time.Time, _ int) string { return "- " + d.Format("2006-01-02") + "\n" }),
		"a year's rota":      dated(from, 365, 1, func(d time.Time, _ int) string { return d.Format("2006-01-02") + " 值班：待定\n" }),
		"days with weekdays": dated(from, 200, 1, func(d time.Time, _ int) string {
			return d.Format("1月2日") + "（周" + weekday[d.Weekday()] + "）\n"
		}),
		"a plan of a quarter": dated(from, 90, 1, func(d time.Time, i int) string {
			return fmt.Sprintf("%s 第%d天：完成模块%c的开发和自测，并在群里同步进度。\n", d.Format("2006-01-02"), i+1, 'A'+i%26)
		}),
		"meetings": dated(from, 52, 7, func(d time.Time, _ int) string {
			return d.Format("2006-01-02 15:04") + " 项目周会，会议室在三楼，请提前五分钟到场并带上电脑。\n"
		}),
		"a table of days": dated(from, 120, 1, func(d time.Time, _ int) string { return "| " + d.Format("2006-01-02") + " | 未开始 | |\n" }),
		"hours": dated(from, 96, 1, func(_ time.Time, i int) string {
			return from.Add(time.Duration(i)*15*time.Minute).Format("15:04") + " 空闲\n"
		}),
		"a table of orders": dated(from, 110, 1, func(_ time.Time, i int) string {
			return fmt.Sprintf("| 订单 %d | 2026-11-%02d | %d.50 元 | 已经完成 | 顺丰快递 | 客户已经确认收货 | 无备注 |\n", 1000+i*i*7919%9000, 1+i*7%30, i*i*31%977)
		}),
		"orders": dated(from, 50, 1, func(_ time.Time, i int) string {
			return fmt.Sprintf("订单 %d 已经处理完毕，金额为 %d 元，请相关同事尽快确认收货情况并在系统里登记，谢谢大家的配合。\n", 1000+i*i*7919%9000, i*i*31%977)
		}),
		"a log": "```\n" + dated(from, 150, 1, func(_ time.Time, i int) string {
			return from.Add(time.Duration(i)*time.Second).Format("2006-01-02 15:04:05") + " INFO request served in 12 ms\n"
		}) + "```\n",
	} {
		f := New(config)
		through(t, f, text, 7)
		if f.Has(Repeated) || strings.TrimSpace(f.Text()) != strings.TrimSpace(text) {
			t.Errorf("%s: kept %d of %d bytes, found %v", name, len(f.Text()), len(text), f.Found())
		}
	}
}
