package openai

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ebb/bot/openai/openaitest"
	"ebb/sessions/llm"
	"ebb/sessions/written"
)

// inGroup is a question of 张三 with a tool, whose answer is streamed.
func inGroup(h *heard) llm.Request {
	r := ask("张三(u2): 发布会几点")
	r.Kind, r.Voices = llm.KindTurn, llm.ShownNames{Self: "Ebb", Speakers: []string{"张三(u2)", "李四(u3)"}, Askers: []string{"张三(u2)"}}
	r.Delta = h.delta
	return r
}

// A call that the server left in the text is made. Streamed and plain answers agree, and no part of the call is shown.
func TestCallsInTextAreMade(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"hermes", "coder", "mistral", "deepseek", "kimi", "llama", "granite", "json"} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			s := openaitest.NewServer(t, openaitest.WhenFunc(func(openaitest.Request) bool { return true }, func(openaitest.Request) openaitest.Reply {
				return openaitest.Calls("memory_search", `{"query":"发布会"}`)
			}))
			s.Behave("text_calls:" + form)
			c := clientOf(t, 0, s)
			for _, whole := range []bool{false, true} {
				c.models[0].whole.Store(whole)
				var h heard
				r := inGroup(&h)
				if whole {
					r.Delta = nil
				}
				resp, err := c.Generate(t.Context(), r)
				if err != nil || resp.Finish != llm.FinishTools || len(resp.ToolCalls) != 1 || resp.ToolCalls[0].Name != "memory_search" || resp.ToolCalls[0].Arguments != `{"query":"发布会"}` || resp.ToolCalls[0].ID == "" {
					t.Fatalf("got %+v, %v", resp, err)
				}
				if strings.Trim(resp.Text, "好的。\n") != "" || !whole && h.text.String() != resp.Text {
					t.Errorf("the text is %q, shown %q", resp.Text, h.text.String())
				}
			}
		})
	}
}

// A call that can't be made leaves no text and no call.
func TestCallsThatCantBeMade(t *testing.T) {
	t.Parallel()
	s := openaitest.NewServer(t, openaitest.Text("好的。\n<tool_call>\n{\"name\":\"web_search\",\"arguments\":{}}\n</tool_call>"))
	var h heard
	resp, err := clientOf(t, 0, s).Generate(t.Context(), inGroup(&h))
	if err != nil || !resp.Garbled() || strings.TrimSpace(resp.Text) != "好的。" || h.text.String() != resp.Text {
		t.Errorf("got %+v, %v", resp, err)
	}
}

// Reasoning and arguments without end are no answer: the call ends, and the model is asked again.
func TestRepetitionsOutsideTheText(t *testing.T) {
	t.Parallel()
	endless := strings.Repeat("等等，再想想。", 8000)
	for name, bad := range map[string]openaitest.Reply{
		"reasoning": openaitest.Text("好").Thinking(endless),
		"tagged":    openaitest.Text("<think>" + endless),
		"channel":   openaitest.Text("<|channel|>analysis<|message|>" + endless),
		"arguments": openaitest.Calls("memory_search", `{"query":"`+endless+`"}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openaitest.NewServer(t, bad.Slow(10*time.Millisecond), openaitest.Text("周五三点"))
			var h heard
			began := time.Now()
			resp, err := clientOf(t, 1, s).Generate(t.Context(), inGroup(&h))
			if err != nil || resp.Text != "周五三点" || len(resp.ToolCalls) > 0 {
				t.Errorf("got %.80q with %d calls, %v", resp.Text, len(resp.ToolCalls), err)
			}
			// The whole stream takes more than 70 s.
			if took := time.Since(began); took > 40*time.Second {
				t.Errorf("the call took %s", took)
			}
		})
	}
}

// Words in other names, and words without end, are cut while they come: the call ends.
func TestAnswersThatGoOnAreEnded(t *testing.T) {
	t.Parallel()
	var counting strings.Builder
	for i := range 6000 {
		fmt.Fprintf(&counting, "第%d次：等待发布完成。\n", i+1)
	}
	for name, c := range map[string]struct {
		text, want string
		finish     llm.Finish
		kind       written.Kind
		pieces     int // characters
	}{
		"counting":     {counting.String(), "第1次：等待发布完成。\n第2次：等待发布完成。", llm.FinishRepeats, written.Repeated, 20},
		"a template":   {"周五三点<|im_end|>\n<|im_start|>user\n" + strings.Repeat("好的。", 8000), "周五三点", llm.FinishStop, written.Leaked, 8},
		"other people": {"Ebb: 周五三点\n\n张三(u2): 好的，那就这样定了\n\n" + strings.Repeat("Ebb: 不客气，还有别的吗\n", 2000), "周五三点", llm.FinishStop, written.Spoken, 8},
		"one word":     {"周五" + strings.Repeat("发布", 8000), "周五发布发布", llm.FinishRepeats, written.Repeated, 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openaitest.NewServer(t, openaitest.Text(c.text).Pieces(c.pieces).Slow(10*time.Millisecond), openaitest.Text("好"))
			client := clientOf(t, 0, s)
			var h heard
			began := time.Now()
			resp, err := client.Generate(t.Context(), inGroup(&h))
			if err != nil || strings.TrimSpace(resp.Text) != c.want || resp.Finish != c.finish || fmt.Sprint(resp.Corrected[len(resp.Corrected)-1]) != string(c.kind) {
				t.Fatalf("got %.80q, %q, %v, %v", resp.Text, resp.Finish, resp.Corrected, err)
			}
			if !resp.Guessed || resp.Usage.Prompt == 0 || resp.Usage.Completion == 0 {
				t.Errorf("a call that ended early has the usage %+v", resp.Usage)
			}
			if h.text.String() != resp.Text {
				t.Errorf("shown is %.80q", h.text.String())
			}
			// The whole stream takes more than 20 s.
			if took := time.Since(began); took > 15*time.Second {
				t.Errorf("the call took %s", took)
			}
			if resp, err := client.Generate(t.Context(), inGroup(&h)); err != nil || resp.Text != "好" {
				t.Errorf("the next answer is %q, %v", resp.Text, err)
			}
		})
	}
}

// A rota is an answer, but where the limit of tokens ended it, it may be a loop. A label that a later line has, too, is shown again.
func TestWordsThatTheEndDecidesOn(t *testing.T) {
	t.Parallel()
	var rota strings.Builder
	for i := range 200 {
		fmt.Fprintf(&rota, "%s 由张三值班，电话保持畅通，有事在群里说。\n", time.Date(2026, 1, 1+i, 0, 0, 0, 0, time.UTC).Format(time.DateOnly))
	}
	rows := strings.SplitAfter(rota.String(), "\n")
	dialogue := "机器人：您好，请问有什么可以帮您？\n\n客户：我想退货"
	for name, c := range map[string]struct {
		answer openaitest.Reply
		want   string
		finish llm.Finish
	}{
		"to its end":   {openaitest.Text(rota.String()), rota.String(), llm.FinishStop},
		"to the limit": {openaitest.Text(rota.String()).Finish("length"), rows[0] + rows[1], llm.FinishRepeats},
		"a dialogue":   {openaitest.Text(dialogue), dialogue, llm.FinishStop},
	} {
		var h heard
		resp, err := clientOf(t, 0, openaitest.NewServer(t, c.answer)).Generate(t.Context(), inGroup(&h))
		if err != nil || resp.Text != c.want || resp.Finish != c.finish || h.text.String() != resp.Text {
			t.Errorf("%s: got %.80q, %q, %v; shown %.80q", name, resp.Text, resp.Finish, err, h.text.String())
		}
	}
}

// The reasoning of gpt-oss is no part of the answer, however much of its template the server leaves, and a call in it is made.
func TestOnlyTheFinalChannelIsRead(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"full", "headless", "bare"} {
		s := openaitest.NewServer(t, openaitest.Calls("memory_search", `{"query":"发布会"}`), openaitest.Text("周五三点").Pieces(3), openaitest.Text("周五四点").Pieces(3))
		s.Behave("harmony:" + form)
		c := clientOf(t, 0, s)
		var h heard
		if resp, err := c.Generate(t.Context(), inGroup(&h)); err != nil || len(resp.ToolCalls) != 1 || resp.ToolCalls[0].Name != "memory_search" || h.text.String() != resp.Text {
			t.Errorf("%s: got %+v, %v", form, resp, err)
		}
		for _, want := range []string{"周五三点", "周五四点"} {
			h = heard{}
			if resp, err := c.Generate(t.Context(), inGroup(&h)); err != nil || resp.Text != want || h.text.String() != want {
				t.Errorf("%s: got %+v, %v; shown %q", form, resp, err, h.text.String())
			}
		}
	}
}
