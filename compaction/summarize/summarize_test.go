package summarize

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/compaction/compactiontest"
	"ebb/compaction/transcript"
	"ebb/sessions"
	"ebb/sessions/llm"
	"ebb/sessions/llm/llmtest"
)

// modelFunc is a model by a function of the request and the number of the call, from 1.
type modelFunc struct {
	answer func(n int, r llm.Request) (llm.Response, error)
	asked  []llm.Request
}

func (m *modelFunc) Generate(_ context.Context, r llm.Request) (llm.Response, error) {
	m.asked = append(m.asked, r)
	return m.answer(len(m.asked), r)
}

// goodText names only people and things of talk.
const goodText = "## 决定与约束\n发布定在下周五，由李娜负责，张伟配合，先灰度一成再全量，值班群里同步进展。\n## 未决问题\n回滚方案由张伟周四给出，监控阈值还没有人确认。\n## 关键标识\n无"

func good() llm.Response {
	return llm.Response{Text: goodText, Finish: llm.FinishStop, Model: "main"}
}

func summarizer(m llm.Model) *Summarizer {
	return &Summarizer{Model: m, Counter: compactiontest.Counter(), Context: 16000, Retries: 3, Backoff: time.Microsecond}
}

func TestSummarizeCoversTheRange(t *testing.T) {
	t.Parallel()
	m := &modelFunc{answer: func(int, llm.Request) (llm.Response, error) { return good(), nil }}
	got, err := summarizer(m).Summarize(t.Context(), Request{Previous: "上一份摘要", Events: compactiontest.Talk(5, 50), Target: 300, Focus: "订单号"})
	if err != nil || got.Text != goodText || got.Calls != 1 {
		t.Fatalf("got %+v, %v", got, err)
	}
	r := m.asked[0]
	for _, want := range []string{"问题 0", "回答 4", "张伟(u1)", "上一份摘要", "订单号"} {
		if !strings.Contains(llmtest.Data(r), want) {
			t.Errorf("the request lacks %q", want)
		}
		if strings.Contains(llmtest.Instructions(r), want) {
			t.Errorf("%q, which was said in the chat, stands in the system prompt", want)
		}
	}
	if !strings.Contains(llmtest.Instructions(r), "## 关键标识") || !strings.Contains(llmtest.Instructions(r), "300") {
		t.Errorf("system prompt: %s", llmtest.Instructions(r))
	}
}

// P55, P56: whatever a model answers instead of a summary is a failed attempt, and there are as many as configured.
func TestUnusableAnswersAreNoSummaries(t *testing.T) {
	t.Parallel()
	say := func(text string, stop, calls bool) func() (llm.Response, error) {
		return func() (llm.Response, error) {
			answer := llm.Response{Text: text, Finish: llm.FinishLength}
			if stop {
				answer.Finish = llm.FinishStop
			}
			if calls {
				answer.ToolCalls = memorySave
			}
			return answer, nil
		}
	}
	for name, answer := range map[string]func() (llm.Response, error){
		"error":         func() (llm.Response, error) { return llm.Response{}, errors.New("status 500") },
		"empty":         say(" \n", true, false),
		"thinking only": say("<think>let me see</think>", true, false),
		"open thinking": say("<think>let me see, the user", true, false),
		"cut off":       say(goodText, false, false),
		"tool call":     say(goodText, true, true),
		"refusal":       say("抱歉，我无法总结这段对话，因为其中含有我不能处理的内容，请见谅。", true, false),
		"english no":    say("I'm sorry, but I can't help with summarizing this conversation for you today.", true, false),
		"error page":    say("<html><body>502 Bad Gateway: the upstream server did not answer</body></html>", true, false),
		"too short":     say("聊了些事。", true, false),
		"endless":       say(strings.Repeat("we will ship the new release on friday then. ", 40), true, false),
		"one word":      say(strings.Repeat("no ", 500), true, false),
		"echo":          say("<<<transcript abc\n{\"n\":1}\n"+goodText, true, false),
	} {
		m := &modelFunc{answer: func(int, llm.Request) (llm.Response, error) { return answer() }}
		if got, err := summarizer(m).Summarize(t.Context(), Request{Events: compactiontest.Talk(30, 50), Target: 300}); err == nil {
			t.Errorf("%s: stored %q", name, got.Text)
		}
		if len(m.asked) != 3 {
			t.Errorf("%s: %d attempts, want 3", name, len(m.asked))
		}
	}
}

// P59: after k failures the whole range is summarized once.
func TestRetryCoversTheSameRange(t *testing.T) {
	t.Parallel()
	m := &modelFunc{answer: func(n int, _ llm.Request) (llm.Response, error) {
		if n < 3 {
			return llm.Response{}, errors.New("busy")
		}
		return good(), nil
	}}
	got, err := summarizer(m).Summarize(t.Context(), Request{Events: compactiontest.Talk(3, 50), Target: 300})
	if err != nil || got.Calls != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	if llmtest.Data(m.asked[0]) != llmtest.Data(m.asked[2]) {
		t.Error("the third attempt asked for something else than the first")
	}
}

var errModel = errors.New("no answer")

// P56, P57: the summariser's attempts, then one of the chat's model where that is another, then the end.
func TestLadderOfModels(t *testing.T) {
	t.Parallel()
	fails := func(e error) func() (llm.Response, error) {
		return func() (llm.Response, error) { return llm.Response{}, e }
	}
	empty := func() (llm.Response, error) { return llm.Response{Finish: llm.FinishStop}, nil }
	for name, c := range map[string]struct {
		model  string
		answer func() (llm.Response, error)
		want   string // models asked, when the chat's fails too
	}{
		"unusable answers":              {"cheap", empty, "cheap cheap cheap chat"},
		"busy":                          {"cheap", fails(fmt.Errorf("ask: %w", &llm.CallError{Class: llm.Busy, Err: errModel})), "cheap cheap cheap chat"},
		"unknown errors":                {"cheap", fails(errors.New("status 500")), "cheap cheap cheap chat"},
		"denied":                        {"cheap", fails(&llm.CallError{Class: llm.Denied, Err: errModel}), "cheap chat"},
		"no model of its own":           {"", empty, "chat chat chat"},
		"no model of its own, denied":   {"", fails(&llm.CallError{Class: llm.Denied, Err: errModel}), "chat"},
		"no model of its own, overflow": {"", fails(&llm.CallError{Class: llm.Overflow, Err: errModel}), "chat chat chat chat chat"},
		"overflow":                      {"cheap", fails(&llm.CallError{Class: llm.Overflow, Err: errModel}), "cheap cheap cheap cheap cheap chat"},
	} {
		for _, saves := range []bool{false, true} {
			if saves && c.model == "" {
				continue
			}
			m := &modelFunc{answer: func(_ int, r llm.Request) (llm.Response, error) {
				if saves && r.Model == "" {
					return good(), nil
				}
				return c.answer()
			}}
			s := summarizer(m)
			s.Name = c.model
			got, err := s.Summarize(t.Context(), Request{Events: compactiontest.Talk(100, 20), Target: 300})
			if (err == nil) != saves {
				t.Errorf("%s: error %v", name, err)
			}
			if saves && (got.Text != goodText || got.Calls != len(m.asked)) {
				t.Errorf("%s: %+v", name, got)
			}
			if asked := m.models(); asked != c.want && !saves || !strings.HasPrefix(asked, c.want) {
				t.Errorf("%s: asked %s, want %s", name, asked, c.want)
			}
		}
	}
}

func (m *modelFunc) models() string {
	var out []string
	for _, r := range m.asked {
		if r.Model == "" {
			r.Model = "chat"
		}
		out = append(out, r.Model)
	}
	return strings.Join(out, " ")
}

// The chat's model, once it stands in, summarizes the rest too: an unavailable summarizer is not asked for every chunk.
func TestStandInCoversTheRest(t *testing.T) {
	t.Parallel()
	m := &modelFunc{answer: func(n int, r llm.Request) (llm.Response, error) {
		if r.Model == "cheap" && n > 1 {
			return llm.Response{}, &llm.CallError{Class: llm.Denied, Err: errModel}
		}
		return good(), nil
	}}
	s := summarizer(m)
	s.Name = "cheap"
	if _, err := s.Summarize(t.Context(), Request{Events: compactiontest.Talk(600, 10), Target: 300}); err != nil {
		t.Fatal(err)
	}
	if got := m.models(); !strings.HasPrefix(got, "cheap cheap chat chat") || strings.Count(got, "cheap") != 2 {
		t.Errorf("asked %s", got)
	}
	checkAllSummarized(t, m, 600, func(i int) bool { return i != 1 })
}

// numbers are the events in a request.
var numbers = regexp.MustCompile(`(?m)^\{"n":(\d+),`)

func eventsIn(r llm.Request) []string {
	var out []string
	for _, m := range numbers.FindAllStringSubmatch(llmtest.Data(r), -1) {
		out = append(out, m[1])
	}
	return out
}

// checkAllSummarized fails the test unless the answered requests hold every event of the given number of turns once, in order.
func checkAllSummarized(t *testing.T, m *modelFunc, turns int, answered func(i int) bool) {
	t.Helper()
	next := 1
	for i, r := range m.asked {
		if !answered(i) {
			continue
		}
		for _, n := range eventsIn(r) {
			if n != fmt.Sprint(next) {
				t.Fatalf("request %d has event %s, want %d", i, n, next)
			}
			next++
		}
	}
	if next != 2*turns+1 {
		t.Errorf("events up to %d were summarized, want %d", next-1, 2*turns)
	}
}

// P58, P59: a model with a smaller window than ours gets smaller chunks until they fit, never the same bytes twice. In
// the end every event is summarized once.
func TestOverflowHalvesTheChunk(t *testing.T) {
	t.Parallel()
	size := func(r llm.Request) int { return compactiontest.Counter().Count(llmtest.Data(r)) }
	m := &modelFunc{answer: func(_ int, r llm.Request) (llm.Response, error) {
		if size(r) > 2500 {
			return llm.Response{}, fmt.Errorf("model main: %w", &llm.CallError{Class: llm.Overflow, Err: errModel})
		}
		return good(), nil
	}}
	if _, err := summarizer(m).Summarize(t.Context(), Request{Events: compactiontest.Talk(200, 10), Target: 300}); err != nil {
		t.Fatal(err)
	}
	for i, r := range m.asked {
		if i > 0 && size(m.asked[i-1]) > 2500 && size(r)*3 > size(m.asked[i-1])*2 {
			t.Errorf("request %d of %d tokens overflowed, and the next has %d", i-1, size(m.asked[i-1]), size(r))
		}
	}
	checkAllSummarized(t, m, 200, func(i int) bool { return size(m.asked[i]) <= 2500 })
}

// One message that is too long by itself is halved too, and still read to its end.
func TestOverflowHalvesAMessage(t *testing.T) {
	t.Parallel()
	m := &modelFunc{answer: func(n int, _ llm.Request) (llm.Response, error) {
		if n < 4 {
			return llm.Response{}, &llm.CallError{Class: llm.Overflow, Err: errModel}
		}
		return good(), nil
	}}
	body := strings.Repeat("很长的一段话，", 20000)
	events := []sessions.Event{{Seq: 1, Role: sessions.RoleUser, Content: body, Tokens: compactiontest.Counter().Count(body)}}
	if _, err := summarizer(m).Summarize(t.Context(), Request{Events: events, Target: 300}); err != nil {
		t.Fatal(err)
	}
	for i := 1; i < 4; i++ {
		if was, is := compactiontest.Counter().Count(llmtest.Data(m.asked[i-1])), compactiontest.Counter().Count(llmtest.Data(m.asked[i])); is*3 > was*2 {
			t.Errorf("%d tokens overflowed, and the next request has %d", was, is)
		}
	}
	if got := textsIn(t, m.asked[3:]...)[1]; got != body {
		t.Errorf("%d of %d bytes were read", len(got), len(body))
	}
}

// A range that is a little longer than a chunk takes one call: the rest would cost a call of its own, for an event or two.
func TestSmallRestsJoinTheirChunk(t *testing.T) {
	t.Parallel()
	for length, want := range map[int]int{7500: 1, 8500: 1, 9500: 1, 12000: 2} { // a chunk has 8,000
		m := &modelFunc{answer: func(int, llm.Request) (llm.Response, error) { return good(), nil }}
		turn := compactiontest.Talk(1, 0)
		turn[0].Content += strings.Repeat("，详情见发布说明与值班表", 20)
		text, _ := transcript.Writer{Counter: compactiontest.Counter()}.Write(turn, 8000)
		events := compactiontest.Talk(length/compactiontest.Counter().Count(text), 0)
		for i := range events {
			if events[i].Role == sessions.RoleUser {
				events[i].Content += strings.Repeat("，详情见发布说明与值班表", 20)
			}
			events[i].Tokens = compactiontest.Counter().Count(events[i].Content)
		}
		if _, err := summarizer(m).Summarize(t.Context(), Request{Events: events, Target: 300}); err != nil {
			t.Fatal(err)
		}
		if len(m.asked) != want {
			t.Errorf("%d tokens took %d calls, want %d", length, len(m.asked), want)
		}
	}
}

// Many short messages take several times their own tokens as lines: the chunks are sized by the lines.
func TestShortMessagesAreSizedAsLines(t *testing.T) {
	t.Parallel()
	m := &modelFunc{answer: func(int, llm.Request) (llm.Response, error) { return good(), nil }}
	var events []sessions.Event
	for i := range 400 {
		events = append(events,
			sessions.Event{Seq: int64(2*i + 1), Role: sessions.RoleUser, SenderNick: "张伟", SenderID: "u0001", Content: "收到，谢谢", Tokens: 4},
			sessions.Event{Seq: int64(2*i + 2), Role: sessions.RoleAssistant, Content: "好的，不客气。", Tokens: 4})
	}
	if _, err := summarizer(m).Summarize(t.Context(), Request{Events: events, Target: 400}); err != nil {
		t.Fatal(err)
	}
	for i, r := range m.asked {
		if n := compactiontest.Counter().Count(llmtest.Instructions(r)) + compactiontest.Counter().Count(llmtest.Data(r)); n+r.MaxOutput > 16000 {
			t.Errorf("request %d: %d tokens and %d for the answer in a window of 16,000", i, n, r.MaxOutput)
		}
	}
	checkAllSummarized(t, m, 400, func(int) bool { return true })
}

func TestLargeRangesAreSummarizedInChunks(t *testing.T) {
	t.Parallel()
	m := &modelFunc{answer: func(n int, _ llm.Request) (llm.Response, error) {
		c := good()
		c.Text += fmt.Sprintf("\n部分 %d 已并入", n)
		return c, nil
	}}
	events := compactiontest.Talk(40, 0)
	for i := range events {
		events[i].Content += strings.Repeat("，详情见发布说明与值班表", 36)
		events[i].Tokens = compactiontest.Counter().Count(events[i].Content)
	}
	got, err := summarizer(m).Summarize(t.Context(), Request{Events: events, Target: 300})
	if err != nil || got.Calls < 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	seen := 0
	for i, r := range m.asked {
		if n := compactiontest.Counter().Count(llmtest.Instructions(r)) + compactiontest.Counter().Count(llmtest.Data(r)) + r.MaxOutput; n > 16000 {
			t.Errorf("request %d takes %d tokens", i, n)
		}
		if i > 0 && !strings.Contains(llmtest.Data(r), fmt.Sprintf("部分 %d 已并入", i)) {
			t.Errorf("request %d does not continue the one before", i)
		}
		seen += strings.Count(llmtest.Data(r), `"who":"`)
	}
	if seen != 40 {
		t.Errorf("%d of 40 turns were summarized", seen)
	}
}

func TestOneHugeMessageStillFits(t *testing.T) {
	t.Parallel()
	m := &modelFunc{answer: func(int, llm.Request) (llm.Response, error) { return good(), nil }}
	body := strings.Repeat("很长的一段话，", 20000)
	events := []sessions.Event{{Seq: 1, Role: sessions.RoleUser, Content: body, Tokens: compactiontest.Counter().Count(body)}}
	if _, err := summarizer(m).Summarize(t.Context(), Request{Events: events, Target: 300}); err != nil {
		t.Fatal(err)
	}
	if n := compactiontest.Counter().Count(llmtest.Data(m.asked[0])); n > 12000 {
		t.Errorf("the request takes %d tokens of a window of 16,000", n)
	}
}

// P56: between the attempts lie the configured delays, each longer by the first, give or take a fifth; the chat's model is
// asked without one.
func TestDelaysOfAttempts(t *testing.T) {
	t.Parallel()
	for _, retries := range []int{1, 3, 5} {
		synctest.Test(t, func(t *testing.T) {
			var at []time.Time
			m := &modelFunc{answer: func(int, llm.Request) (llm.Response, error) {
				at = append(at, time.Now())
				return llm.Response{}, errors.New("status 500")
			}}
			s := summarizer(m)
			s.Name, s.Retries, s.Backoff = "cheap", retries, time.Second
			if _, err := s.Summarize(t.Context(), Request{Events: compactiontest.Talk(3, 50), Target: 300}); err == nil {
				t.Fatal("no error")
			}
			if len(at) != retries+1 || m.asked[retries].Model != "" {
				t.Fatalf("%d retries: asked %s", retries, m.models())
			}
			for i := 1; i < retries; i++ {
				want := time.Duration(i) * time.Second
				if got := at[i].Sub(at[i-1]); got < want*8/10 || got > want*12/10 {
					t.Errorf("attempt %d came after %v, want about %v", i+1, got, want)
				}
			}
			if got := at[retries].Sub(at[retries-1]); got != 0 {
				t.Errorf("the chat's model was asked after %v", got)
			}
		})
	}
}

// A wait for the next attempt ends with the task.
func TestCancelEndsTheWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &modelFunc{answer: func(int, llm.Request) (llm.Response, error) { return llm.Response{}, errors.New("status 500") }}
		s := summarizer(m)
		s.Backoff = time.Hour
		stopped := errors.New("stopped")
		ctx, stop := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { stop(stopped) })
		if _, err := s.Summarize(ctx, Request{Events: compactiontest.Talk(3, 50), Target: 300}); !errors.Is(err, stopped) || len(m.asked) != 1 {
			t.Errorf("%d calls, %v", len(m.asked), err)
		}
	})
}

// A model that hangs ends the summary with its first chunk, whatever time the other chunks are given.
func TestHangingModelTakesTheTimeOfOneChunk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := summarizer(hangingModel{})
		s.Context, s.Deadline = 4000, 2*time.Minute
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		if _, err := s.Summarize(ctx, Request{Events: compactiontest.Talk(40, 400), Target: 300}); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if took := time.Since(began); took != 2*time.Minute {
			t.Errorf("took %s", took)
		}
	})
}

type hangingModel struct{}

func (hangingModel) Generate(ctx context.Context, _ llm.Request) (llm.Response, error) {
	<-ctx.Done()
	return llm.Response{}, ctx.Err()
}

// P61: an answer that did not end by itself is no summary, however good it looks.
func TestPartialAnswerIsNoSummary(t *testing.T) {
	t.Parallel()
	m := &modelFunc{answer: func(n int, _ llm.Request) (llm.Response, error) {
		c := good()
		if n < 3 {
			c.Finish = llm.FinishLength
		}
		c.Text += fmt.Sprintf("\n第 %d 稿", n)
		return c, nil
	}}
	got, err := summarizer(m).Summarize(t.Context(), Request{Events: compactiontest.Talk(3, 50), Target: 300})
	if err != nil || !strings.Contains(got.Text, "第 3 稿") {
		t.Errorf("%q, %v", got.Text, err)
	}
}

// A fault that is an overflow and temporary at once is still not asked with the same bytes again.
func TestOverflowIsNeverRepeated(t *testing.T) {
	t.Parallel()
	m := &modelFunc{answer: func(int, llm.Request) (llm.Response, error) {
		return llm.Response{}, &llm.CallError{Class: llm.Overflow, Next: true, Err: errModel}
	}}
	if _, err := summarizer(m).Summarize(t.Context(), Request{Events: compactiontest.Talk(100, 20), Target: 300}); err == nil {
		t.Fatal("no error")
	}
	for i := 1; i < len(m.asked); i++ {
		if len(llmtest.Data(m.asked[i])) >= len(llmtest.Data(m.asked[i-1])) {
			t.Errorf("request %d of %d bytes overflowed, and the next has %d", i-1, len(llmtest.Data(m.asked[i-1])), len(llmtest.Data(m.asked[i])))
		}
	}
}

// A chunk takes half of the window, and a quarter where single events are large.
func TestChunksUseTheWindow(t *testing.T) {
	t.Parallel()
	small, large := compactiontest.Talk(10, 50), compactiontest.Talk(10, 20000)
	for _, c := range []struct {
		context int
		events  []sessions.Event
		want    int
	}{{16000, small, 8000}, {128000, small, 64000}, {128000, large, 32000}} {
		s := summarizer(nil)
		s.Context = c.context
		if got := s.chunkLimit(c.events); got != c.want {
			t.Errorf("%d of a window of %d, want %d", got, c.context, c.want)
		}
	}
}
