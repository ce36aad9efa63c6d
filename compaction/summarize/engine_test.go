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
	"ebb/compaction/audit"
	"ebb/compaction/compactiontest"
	"ebb/sessions"
)

func engine(m Model) *Engine { return &Engine{Summarizer: summarizer(m)} }

// modes are what models do instead of summarising: each is an attempt that fails.
var modes = map[string]func(ctx context.Context) (Completion, error){
	"empty":      answers(audit.Reply{Text: " \n", Stop: true}),
	"refuse":     answers(audit.Reply{Text: "抱歉，我无法总结这段对话，因为其中含有我不能处理的内容，请见谅。", Stop: true}),
	"garbage":    answers(audit.Reply{Text: strings.Repeat("we will ship the new release on friday then. ", 40), Stop: true}),
	"error page": answers(audit.Reply{Text: "<html><body>502 Bad Gateway: the upstream server did not answer</body></html>", Stop: true}),
	"error":      func(context.Context) (Completion, error) { return Completion{}, errors.New("status 500") },
	"denied":     func(context.Context) (Completion, error) { return Completion{}, fault{} },
	"overflow":   func(context.Context) (Completion, error) { return Completion{}, fault{overflow: true} },
	"oversize": func(context.Context) (Completion, error) {
		return Completion{Reply: audit.Reply{Text: gist(30000, 1), Stop: true}}, nil
	},
	"tool call":     answers(audit.Reply{Text: goodText, Stop: true, Calls: true}),
	"thinking only": answers(audit.Reply{Text: "<think>the user wants a summary</think>", Stop: true}),
	"open thinking": answers(audit.Reply{Text: "<think>the user wants a summary", Stop: true}),
	"length":        answers(audit.Reply{Text: goodText}),
	"timeout": func(ctx context.Context) (Completion, error) {
		<-ctx.Done()
		return Completion{}, context.Cause(ctx)
	},
}

func answers(r audit.Reply) func(context.Context) (Completion, error) {
	return func(context.Context) (Completion, error) {
		return Completion{Reply: r, Usage: sessions.Usage{Prompt: 100, Completion: 10}, Cost: 0.5}, nil
	}
}

// ctxModel is a model by a function that also knows the request's context.
type ctxModel func(ctx context.Context, r CompleteRequest) (Completion, error)

func (m ctxModel) Complete(ctx context.Context, r CompleteRequest) (Completion, error) {
	return m(ctx, r)
}

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
	return &modelFunc{answer: func(n int, r CompleteRequest) (Completion, error) {
		target, _ := strconv.Atoi(targetRE.FindStringSubmatch(r.System)[1])
		return Completion{Reply: audit.Reply{Text: gist(target, uint64(n)), Stop: true}, Model: "main", Usage: sessions.Usage{Prompt: 10, Completion: 5}, Cost: 1}, nil
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
				e := engine(ctxModel(func(ctx context.Context, _ CompleteRequest) (Completion, error) { return mode(ctx) }))
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
			e := engine(ctxModel(func(ctx context.Context, _ CompleteRequest) (Completion, error) {
				if calls++; calls == 1 {
					return Completion{Reply: audit.Reply{Text: gist(200, 3), Stop: true}}, nil
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
		m := &modelFunc{answer: func(n int, _ CompleteRequest) (Completion, error) {
			return Completion{Reply: audit.Reply{Text: []string{c.first, c.second}[n-1], Stop: true}, Model: "main"}, nil
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
			if r := m.asked[1]; !strings.Contains(r.User, "https://ops.example/t/4471") || !strings.Contains(r.User, c.first[30:60]) || r.System == m.asked[0].System {
				t.Errorf("%s: the repair was asked for so: %s\n%s", name, r.System, r.User)
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
		m := &modelFunc{answer: func(n int, _ CompleteRequest) (Completion, error) {
			if n == 2 {
				return Completion{Reply: audit.Reply{Text: whole.String() + gist(60, 2), Stop: true}}, nil
			}
			return Completion{Reply: audit.Reply{Text: c.first, Stop: true}}, nil
		}}
		d, err := engine(m).Summarize(t.Context(), taskOf(compaction.Policies[c.policy], compactiontest.Talk(30, 80)))
		if err != nil || len(m.asked) != c.calls {
			t.Errorf("%s: %d calls, %+v, %v", name, len(m.asked), d.Report, err)
			continue
		}
		if c.policy == "offload" && len(layouts[compaction.ProfileTechnical].missingHeadings(d.Summaries[0].Text, "zh")) > 0 {
			t.Errorf("%s: %s", name, d.Summaries[0].Text)
		}
		if c.calls == 2 && !strings.Contains(m.asked[1].User, "Code Changes") {
			t.Errorf("%s: the repair does not name the section: %s", name, m.asked[1].User)
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
			m := &modelFunc{answer: func(int, CompleteRequest) (Completion, error) {
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
				if !strings.Contains(m.asked[0].System, w) {
					t.Errorf("%s in %s lacks %q: %s", profile, language, w, m.asked[0].System)
				}
			}
			if profile == compaction.ProfileEvents && strings.Contains(m.asked[0].System, "## ") {
				t.Errorf("a log of events has sections: %s", m.asked[0].System)
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
		if got := strings.Contains(m.asked[0].User, "旧摘要甲") && strings.Contains(m.asked[0].User, "旧摘要乙"); got != c.previous {
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
		if !strings.Contains(r.User, "订单号与退款") || strings.Contains(r.System, "订单号与退款") {
			t.Errorf("call %d: the focus is not in the data, or in the instructions", i)
		}
		if n := strings.Count(r.User, "别的"); n > 250 {
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
	if !strings.Contains(m.asked[0].User, sessions.Unavailable(blob)) {
		t.Errorf("the request does not say so: %s", m.asked[0].User)
	}
}

// A summary that is longer than asked for is kept. Above a quarter of a chat request its middle is left out, so that a
// model that ignores the length stops no compaction. P31
func TestLongSummaries(t *testing.T) {
	t.Parallel()
	for length, want := range map[int]string{600: "kept", 900: "kept", 1300: "trimmed", 3500: "trimmed", 90000: "refused"} {
		m := &modelFunc{answer: func(int, CompleteRequest) (Completion, error) {
			return Completion{Reply: audit.Reply{Text: gist(length, 1), Stop: true}}, nil
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
			m := &modelFunc{answer: func(n int, _ CompleteRequest) (Completion, error) {
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
			if !strings.Contains(m.asked[1].User, `"at_most":`) {
				t.Errorf("%s: the second request does not ask for less: %s", name, m.asked[1].User)
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
		m := &modelFunc{answer: func(int, CompleteRequest) (Completion, error) {
			return Completion{Reply: audit.Reply{Text: string(long), Stop: true}}, nil
		}}
		d, err := engine(m).Summarize(t.Context(), task)
		if err != nil || len(d.Summaries) != 1 {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, r := range m.asked {
			if strings.Contains(r.User, `"at_most":`) {
				t.Errorf("%s: a summary of %d tokens was asked to be shorter", name, d.Summaries[0].Tokens)
			}
		}
		if d.Summaries[0].Text != string(long) {
			t.Errorf("%s: a summary of %d tokens became one of %d: %+v", name, compactiontest.Counter().Count(string(long)), d.Summaries[0].Tokens, d.Report)
		}
	}
}
