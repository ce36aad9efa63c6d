package summarize

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/compaction"
	"ebb/compaction/compactiontest"
	"ebb/sessions"
	"ebb/sessions/llm"
	"ebb/sessions/llm/llmtest"
)

func engine(m llm.Model) *Engine { return &Engine{Summarizer: summarizer(m)} }

// modes are what models do instead of summarising: each is an attempt that fails.
var modes = map[string]func(ctx context.Context) (llm.Response, error){
	"empty":      answers(llm.Response{Text: " \n", Finish: llm.FinishStop}),
	"refuse":     answers(llm.Response{Text: "抱歉，我无法总结这段对话，因为其中含有我不能处理的内容，请见谅。", Finish: llm.FinishStop}),
	"garbage":    answers(llm.Response{Text: strings.Repeat("we will ship the new release on friday then. ", 40), Finish: llm.FinishStop}),
	"error page": answers(llm.Response{Text: "<html><body>502 Bad Gateway: the upstream server did not answer</body></html>", Finish: llm.FinishStop}),
	"error":      func(context.Context) (llm.Response, error) { return llm.Response{}, errors.New("status 500") },
	"denied": func(context.Context) (llm.Response, error) {
		return llm.Response{}, &llm.CallError{Class: llm.Denied, Err: errModel}
	},
	"overflow": func(context.Context) (llm.Response, error) {
		return llm.Response{}, &llm.CallError{Class: llm.Overflow, Err: errModel}
	},
	"oversize": func(context.Context) (llm.Response, error) {
		return llm.Response{Text: gist(30000, 1), Finish: llm.FinishStop}, nil
	},
	"tool call":     answers(llm.Response{Text: goodText, Finish: llm.FinishStop, ToolCalls: memorySave}),
	"thinking only": answers(llm.Response{Text: "<think>the user wants a summary</think>", Finish: llm.FinishStop}),
	"open thinking": answers(llm.Response{Text: "<think>the user wants a summary", Finish: llm.FinishStop}),
	"length":        answers(llm.Response{Text: goodText}),
	"timeout": func(ctx context.Context) (llm.Response, error) {
		<-ctx.Done()
		return llm.Response{}, context.Cause(ctx)
	},
}

var memorySave = []sessions.ToolCall{{ID: "1", Name: "memory_save"}}

func answers(r llm.Response) func(context.Context) (llm.Response, error) {
	return func(context.Context) (llm.Response, error) {
		r.Usage, r.Cost = sessions.Usage{Prompt: 100, Completion: 10}, 0.5
		return r, nil
	}
}

// ctxModel is a model by a function that also knows the request's context.
var wordsOfGist = strings.Fields("讨论 发布 回滚 方案 接口 文档 同意 反对 安排 周四 周五 会议 预算 合同 客户 反馈 问题 修复 测试 上线 监控 告警 值班 数据 备份 迁移 权限 流程 审批 需求 设计 评审 进度 风险 依赖 资源 培训 总结")

// gist is a text without identifiers of about the given number of tokens.
func gist(tokens int, seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 7))
	var b strings.Builder
	b.WriteString("## 进行中的任务\n张伟，李娜：")
	for n := 0; n < tokens-16; n += 2 {
		b.WriteString(wordsOfGist[r.IntN(len(wordsOfGist))])
		if r.IntN(6) == 0 {
			b.WriteString("，")
		}
		if n%200 == 0 {
			n = compactiontest.Counter().Count(b.String())
		}
	}
	return b.String()
}

var targetRE = regexp.MustCompile(`(\d+) 个 token`)

// obedient is a model that writes summaries of the length asked for.
func obedient() *modelFunc {
	return &modelFunc{answer: func(n int, r llm.Request) (llm.Response, error) {
		target, _ := strconv.Atoi(targetRE.FindStringSubmatch(llmtest.Instructions(r))[1])
		return llm.Response{Text: gist(target, uint64(n)), Finish: llm.FinishStop, Model: "main", Usage: sessions.Usage{Prompt: 10, Completion: 5}, Cost: 1}, nil
	}}
}

func taskOf(p compaction.Policy, events []sessions.Event, active ...sessions.Summary) Task {
	from := events[0].Seq - 1
	return Task{
		Policy: p, Session: sessions.Session{CompactedSeq: from}, Active: active, Events: events, From: from,
		Through: events[len(events)-1].Seq, Target: 300, Longest: 1000,
	}
}

// eventsFrom are events like talk's, from a number on.
func eventsFrom(from int64, turns, tokens int) []sessions.Event {
	events := compactiontest.Talk(turns, tokens)
	for i := range events {
		events[i].Seq += from - 1
	}
	return events
}

// P55, P67: an answer that is no summary yields nothing to commit, and the attempt reports its cost. There is no third
// outcome.
func TestNothingUnusableIsCommitted(t *testing.T) {
	t.Parallel()
	for name, mode := range modes {
		for policy := range compaction.Policies {
			synctest.Test(t, func(t *testing.T) {
				e := engine(llmtest.Func(func(ctx context.Context, _ llm.Request) (llm.Response, error) { return mode(ctx) }))
				e.Summarizer.Backoff = time.Second
				ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
				defer stop()
				d, err := e.Summarize(ctx, taskOf(compaction.Policies[policy], compactiontest.Talk(30, 80)))
				if err == nil || len(d.Summaries) > 0 {
					t.Errorf("%s, %s: %+v", policy, name, d)
				}
				if d.Report.Calls == 0 || name == "empty" && (d.Usage.Prompt != 100*d.Report.Calls || d.Cost != 0.5*float64(d.Report.Calls)) {
					t.Errorf("%s, %s: %d calls took %+v, %v", policy, name, d.Report.Calls, d.Usage, d.Cost)
				}
				if ctx.Err() == nil == (name == "timeout") {
					t.Errorf("%s, %s: the deadline is over: %v", policy, name, ctx.Err())
				}
			})
		}
	}
}

// P67: the same models in the middle of a task, when there is a draft that they should mend: it is kept.
func TestAuditNeverBlocks(t *testing.T) {
	t.Parallel()
	events := compactiontest.Talk(30, 80)
	events[0].Content = "订单 SO-778812 见 https://shop.example/o/778812 ，金额 ¥12,500"
	for name, mode := range modes {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			e := engine(llmtest.Func(func(ctx context.Context, _ llm.Request) (llm.Response, error) {
				if calls++; calls == 1 {
					return llm.Response{Text: gist(200, 3), Finish: llm.FinishStop}, nil
				}
				return mode(ctx)
			}))
			ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
			defer stop()
			d, err := e.Summarize(ctx, taskOf(compaction.Policies["token_budget"], events))
			if err != nil || len(d.Summaries) != 1 {
				t.Fatalf("%s: %+v, %v", name, d, err)
			}
			if calls != 2 || d.Report.Calls != 2 || d.Report.Repaired || !d.Report.Healed || d.Report.Recall == 1 {
				t.Errorf("%s: %d calls, %+v", name, calls, d.Report)
			}
			for _, id := range []string{"SO-778812", "https://shop.example/o/778812", "12,500"} {
				if !strings.Contains(d.Summaries[0].Text, id) {
					t.Errorf("%s: the summary lacks %s: %s", name, id, d.Summaries[0].Text)
				}
			}
		})
	}
}

// P63, P69: a draft that passes costs no second call, one that does not costs one, and a repair that helps is taken.
func TestOneRepairAtMost(t *testing.T) {
	t.Parallel()
	events := compactiontest.Talk(30, 80)
	events[2].Content = "工单 OPS-4471 归李娜，网址 https://ops.example/t/4471"
	whole, half, none := gist(150, 1)+"\n- OPS-4471 https://ops.example/t/4471 李娜", gist(150, 2)+"\n- OPS-4471", gist(150, 3)
	for name, c := range map[string]struct {
		first, second    string
		calls            int
		repaired, healed bool
	}{
		"passes":            {whole, "", 1, false, false},
		"mended":            {none, whole, 2, true, false},
		"mended in part":    {none, half, 2, true, true},
		"no better":         {half, none, 2, false, true},
		"the same again":    {none, none, 2, false, true},
		"invents something": {none, gist(150, 4) + "\n- OPS-9999 https://bad.example/x OPS-8888 OPS-7777", 2, false, true},
	} {
		m := &modelFunc{answer: func(n int, _ llm.Request) (llm.Response, error) {
			return llm.Response{Text: []string{c.first, c.second}[n-1], Finish: llm.FinishStop, Model: "main"}, nil
		}}
		d, err := engine(m).Summarize(t.Context(), taskOf(compaction.Policies["token_budget"], events))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(m.asked) != c.calls || d.Report.Repaired != c.repaired || d.Report.Healed != c.healed {
			t.Errorf("%s: %d calls, %+v", name, len(m.asked), d.Report)
		}
		text := d.Summaries[0].Text
		for _, id := range []string{"OPS-4471", "https://ops.example/t/4471"} {
			if !strings.Contains(text, id) {
				t.Errorf("%s: the summary lacks %s: %s", name, id, text)
			}
		}
		if strings.Contains(text, "OPS-9999") {
			t.Errorf("%s: the worse text was taken: %s", name, text)
		}
		if c.calls == 2 {
			if r := m.asked[1]; !strings.Contains(llmtest.Data(r), "https://ops.example/t/4471") || !strings.Contains(llmtest.Data(r), c.first[30:60]) || llmtest.Instructions(r) == llmtest.Instructions(m.asked[0]) {
				t.Errorf("%s: the repair was asked for so: %s\n%s", name, llmtest.Instructions(r), llmtest.Data(r))
			}
		}
	}
}

// A profile that requires its sections has them asked for once.
func TestRequiredSections(t *testing.T) {
	t.Parallel()
	var whole strings.Builder
	for _, s := range layouts[compaction.ProfileTechnical].Chinese {
		fmt.Fprintf(&whole, "## %s\n无\n", s.Title)
	}
	for name, c := range map[string]struct {
		policy, first string
		calls         int
	}{
		"all there":    {"offload", whole.String() + gist(60, 1), 1},
		"one missing":  {"offload", strings.Replace(whole.String(), "## Code Changes\n", "", 1) + gist(60, 1), 2},
		"none needed":  {"token_budget", gist(100, 1), 1},
		"log of facts": {"turns", gist(100, 1), 1},
	} {
		m := &modelFunc{answer: func(n int, _ llm.Request) (llm.Response, error) {
			if n == 2 {
				return llm.Response{Text: whole.String() + gist(60, 2), Finish: llm.FinishStop}, nil
			}
			return llm.Response{Text: c.first, Finish: llm.FinishStop}, nil
		}}
		d, err := engine(m).Summarize(t.Context(), taskOf(compaction.Policies[c.policy], compactiontest.Talk(30, 80)))
		if err != nil || len(m.asked) != c.calls {
			t.Errorf("%s: %d calls, %+v, %v", name, len(m.asked), d.Report, err)
			continue
		}
		if c.policy == "offload" && len(layouts[compaction.ProfileTechnical].missingHeadings(d.Summaries[0].Text, "zh")) > 0 {
			t.Errorf("%s: %s", name, d.Summaries[0].Text)
		}
		if c.calls == 2 && !strings.Contains(llmtest.Data(m.asked[1]), "Code Changes") {
			t.Errorf("%s: the repair does not name the section: %s", name, llmtest.Data(m.asked[1]))
		}
	}
}

// Every profile asks for its own sections, in the language of the bot, and names the length.
func TestProfilesInPrompts(t *testing.T) {
	t.Parallel()
	for profile, c := range map[compaction.Profile]struct{ zh, en []string }{
		compaction.ProfileChat: {[]string{"## 用户与身份", "## 关键标识"}, []string{"## People", "## Identifiers"}},
		compaction.ProfileWork: {[]string{"## 进行中的工作"}, []string{"## Work in progress"}},
		compaction.ProfileTechnical: {
			[]string{"## Technical Context", "## Debugging & Issues", "技术环境", "## Key Decisions"},
			[]string{"## Technical Context", "## Project Overview", "## Code Changes", "## Current Status", "## Pending Tasks", "## User Preferences"},
		},
		compaction.ProfileEvents: {[]string{"一行一件"}, []string{"one line for each"}},
		"":                       {[]string{"## 用户与身份"}, []string{"## People"}},
	} {
		for language, want := range map[string][]string{"zh": c.zh, "en": c.en} {
			m := &modelFunc{answer: func(int, llm.Request) (llm.Response, error) {
				c := good()
				if language == "en" {
					c.Text = "The release is due on Friday, Li Na owns it, and the way back is still to be written down by somebody. Talk was of nothing else."
				}
				return c, nil
			}}
			s := summarizer(m)
			s.Language = language
			if _, err := s.Summarize(t.Context(), Request{Events: compactiontest.Talk(3, 50), Target: 4321, Profile: profile}); err != nil {
				t.Fatal(err)
			}
			for _, w := range append(want, "4321") {
				if !strings.Contains(llmtest.Instructions(m.asked[0]), w) {
					t.Errorf("%s in %s lacks %q: %s", profile, language, w, llmtest.Instructions(m.asked[0]))
				}
			}
			if profile == compaction.ProfileEvents && strings.Contains(llmtest.Instructions(m.asked[0]), "## ") {
				t.Errorf("a log of events has sections: %s", llmtest.Instructions(m.asked[0]))
			}
		}
	}
	if one, two := PromptVersion(), PromptVersion(); one != two || len(one) != 12 {
		t.Errorf("versions %q and %q", one, two)
	}
}

// The summary of a rolling policy continues the view's summaries and replaces them; a segment is added to them.
func TestRangesOfSummaries(t *testing.T) {
	t.Parallel()
	first := sessions.Summary{StartSeq: 1, EndSeq: 20, Text: "旧摘要甲", Tokens: 9, MsgCount: 20}
	second := sessions.Summary{StartSeq: 21, EndSeq: 30, Text: "旧摘要乙", Tokens: 9, MsgCount: 10}
	for _, c := range []struct {
		policy   string
		active   []sessions.Summary
		start    int64
		previous bool
	}{
		{"token_budget", nil, 31, false},
		{"token_budget", []sessions.Summary{first, second}, 1, true},
		{"archive", nil, 31, false},
		{"archive", []sessions.Summary{first, second}, 31, false},
	} {
		m := obedient()
		d, err := engine(m).Summarize(t.Context(), taskOf(compaction.Policies[c.policy], eventsFrom(31, 10, 80), c.active...))
		if err != nil || len(d.Summaries) != 1 {
			t.Fatalf("%s: %+v, %v", c.policy, d, err)
		}
		if s := d.Summaries[0]; s.StartSeq != c.start || s.EndSeq != 50 || s.Tokens != compactiontest.Counter().Count(s.Text) || s.Level != 0 {
			t.Errorf("%s after %d summaries: %+v", c.policy, len(c.active), s)
		}
		if got := strings.Contains(llmtest.Data(m.asked[0]), "旧摘要甲") && strings.Contains(llmtest.Data(m.asked[0]), "旧摘要乙"); got != c.previous {
			t.Errorf("%s: the old summaries are in the request: %v", c.policy, got)
		}
	}
}

// P85: any policy continues the summaries of another one: the ranges are adjacent.
func TestPoliciesFollowEachOther(t *testing.T) {
	t.Parallel()
	for before := range compaction.Policies {
		for after := range compaction.Policies {
			w := newWorld(t, obedient())
			for i := range 5 {
				p := compaction.Policies[before]
				if i%4 > 1 {
					p = compaction.Policies[after]
				}
				w.compact(p, 4)
			}
		}
	}
}

// A draft is staged as JSON and found again as it was.
func TestDraftIsFoundAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, obedient())
	for range 6 {
		d := w.compact(compaction.Policies["archive"], 5)
		js, err := json.Marshal(d)
		var again Draft
		if err != nil || json.Unmarshal(js, &again) != nil || !reflect.DeepEqual(d, again) {
			t.Fatalf("%+v became %+v: %v", d, again, err)
		}
	}
}

// Focus text is data, at most 500 characters of it, and reaches every call: chunks, repair and roll-up.
func TestFocusReachesEveryCall(t *testing.T) {
	t.Parallel()
	m := obedient()
	focus := "订单号与退款，" + strings.Repeat("别的", 400)
	events := eventsFrom(41, 40, 0)
	for i := range events {
		events[i].Content += strings.Repeat("，详情见发布说明与值班表", 20)
		events[i].Tokens = compactiontest.Counter().Count(events[i].Content)
	}
	events[0].Content += "，工单 OPS-4471"
	old := func(i int64) sessions.Summary {
		return sessions.Summary{StartSeq: 20*i + 1, EndSeq: 20*i + 20, Text: gist(700, uint64(i)), Tokens: 700, MsgCount: 20}
	}
	task := taskOf(compaction.Policies["archive"], events, old(0), old(1))
	task.Focus = focus
	d, err := engine(m).Summarize(t.Context(), task)
	if err != nil || d.Report.RolledUp != 2 {
		t.Fatalf("%+v, %v", d.Report, err)
	}
	if len(m.asked) < 5 {
		t.Fatalf("%d calls, want chunks, a repair and a roll-up", len(m.asked))
	}
	for i, r := range m.asked {
		if !strings.Contains(llmtest.Data(r), "订单号与退款") || strings.Contains(llmtest.Instructions(r), "订单号与退款") {
			t.Errorf("call %d: the focus is not in the data, or in the instructions", i)
		}
		if n := strings.Count(llmtest.Data(r), "别的"); n > 250 {
			t.Errorf("call %d: the focus takes %d characters", i, 2*n)
		}
	}
}

// Results that can't be read any more are counted, and named as unreadable.
func TestUnavailableResultsAreCounted(t *testing.T) {
	t.Parallel()
	blob := sessions.BlobOf("gone")
	events := compactiontest.Talk(10, 80)
	events[3] = sessions.Event{Seq: 4, Role: sessions.RoleTool, Blob: blob, Content: sessions.Unavailable(blob), Tokens: 20}
	events[5].Content = "someone quotes " + sessions.Unavailable(blob)
	m := obedient()
	d, err := engine(m).Summarize(t.Context(), taskOf(compaction.Policies["offload"], events))
	if err != nil || d.Report.Unavailable != 1 {
		t.Errorf("%+v, %v", d.Report, err)
	}
	if !strings.Contains(llmtest.Data(m.asked[0]), sessions.Unavailable(blob)) {
		t.Errorf("the request does not say so: %s", llmtest.Data(m.asked[0]))
	}
}

// A summary that is longer than asked for is kept. Above a quarter of a chat request its middle is left out, so that a
// model that ignores the length stops no compaction. P31
func TestLongSummaries(t *testing.T) {
	t.Parallel()
	for length, want := range map[int]string{600: "kept", 900: "kept", 1300: "trimmed", 3500: "trimmed", 90000: "refused"} {
		m := &modelFunc{answer: func(int, llm.Request) (llm.Response, error) {
			return llm.Response{Text: gist(length, 1), Finish: llm.FinishStop}, nil
		}}
		d, err := engine(m).Summarize(t.Context(), taskOf(compaction.Policies["token_budget"], compactiontest.Talk(100, 80)))
		got := "kept"
		switch {
		case err != nil:
			got = "refused"
		case d.Report.Trimmed:
			got = "trimmed"
		}
		if got != want {
			t.Errorf("%d tokens where 300 were asked for and 1,000 have room: %s, want %s (%v)", length, got, want, err)
		}
		if err == nil && d.Summaries[0].Tokens > 1000+compaction.HealAllowance(300) {
			t.Errorf("%d tokens are stored", d.Summaries[0].Tokens)
		}
	}
}

// A wordy summary of terse turns is asked once to be shorter; otherwise its middle is left out with its identifiers
// kept. It was paid for, and passes the gate of the commit under any policy. P31
func TestWordySummariesAreShortened(t *testing.T) {
	t.Parallel()
	terse := compactiontest.Talk(30, 16) // 1,200 tokens, as 12 messages of the seeds' windows take
	terse[0].Content = "工单 OPS-4711 归张伟"
	for name, policy := range compaction.Policies {
		for _, obedient := range []bool{true, false} {
			m := &modelFunc{answer: func(n int, _ llm.Request) (llm.Response, error) {
				a := good()
				if n == 1 || !obedient {
					a.Text = gist(1300, 1)
				}
				return a, nil
			}}
			task := taskOf(policy, terse)
			task.Source = compaction.TokensOf(terse)
			d, err := engine(m).Summarize(t.Context(), task)
			if err != nil || len(d.Summaries) != 1 {
				t.Errorf("%s: %v", name, err)
				continue
			}
			got := d.Summaries[0]
			if err := policy.Progress(80000, 80000-task.Source+got.Tokens, task.Source, got.Tokens); err != nil || got.Tokens > policy.MostSummary(task.Source) {
				t.Errorf("%s, obedient: %v: %d tokens: %v", name, obedient, got.Tokens, err)
			}
			if !strings.Contains(got.Text, "OPS-4711") || len(m.asked) != 2 || d.Report.Trimmed == obedient || d.Report.Repaired != obedient {
				t.Errorf("%s, obedient: %v: %d calls, %+v: %s", name, obedient, len(m.asked), d.Report, got.Text)
			}
			if !strings.Contains(llmtest.Data(m.asked[1]), `"at_most":`) {
				t.Errorf("%s: the second request does not ask for less: %s", name, llmtest.Data(m.asked[1]))
			}
		}
	}
}

// A summary with which the compaction still gains is kept whole, and not asked to be shorter. If no event must be
// restored, the room for it is the summary's. P31
func TestSummaryThatGainsIsKept(t *testing.T) {
	t.Parallel()
	terse := compactiontest.Talk(30, 16)
	for name, policy := range compaction.Policies {
		task := taskOf(policy, terse)
		task.Source = compaction.TokensOf(terse)
		long := []rune(gist(1300, 1))
		long = long[:sort.Search(len(long), func(n int) bool {
			return compactiontest.Counter().Count(string(long[:n+1])) > policy.MostSummary(task.Source)
		})]
		m := &modelFunc{answer: func(int, llm.Request) (llm.Response, error) {
			return llm.Response{Text: string(long), Finish: llm.FinishStop}, nil
		}}
		d, err := engine(m).Summarize(t.Context(), task)
		if err != nil || len(d.Summaries) != 1 {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, r := range m.asked {
			if strings.Contains(llmtest.Data(r), `"at_most":`) {
				t.Errorf("%s: a summary of %d tokens was asked to be shorter", name, d.Summaries[0].Tokens)
			}
		}
		if d.Summaries[0].Text != string(long) {
			t.Errorf("%s: a summary of %d tokens became one of %d: %+v", name, compactiontest.Counter().Count(string(long)), d.Summaries[0].Tokens, d.Report)
		}
	}
}
