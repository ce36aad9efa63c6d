package openai

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"ebb/bot/openai/openaitest"
	"ebb/sessions/llm"
)

func forcing(text string) llm.Request {
	r := ask(text)
	r.Force = "memory_save"
	return r
}

const saved = `{"facts":[],"nothing_to_save":true}`

// refusing answers like a provider that takes a forced tool only in the given way.
func refusing(way rung) openaitest.Func {
	return func(r openaitest.Request) openaitest.Reply {
		bad := func(s string) openaitest.Reply {
			return openaitest.Error(400, "", fmt.Sprintf(`{"error":{"message":%q,"type":"invalid_request_error"}}`, s))
		}
		thinking := string(r.Raw["enable_thinking"]) != "false"
		switch {
		case r.ToolChoice == "memory_save" && way > rungNamed:
			return bad("tool_choice by name is not supported in thinking mode")
		case r.ToolChoice == "required" && thinking && way > rungRequired:
			return bad("The tool_choice parameter does not support being set to required or object in thinking mode")
		case r.ToolChoice == "required" && way > rungNoThinking:
			return bad("Unrecognized request argument supplied: enable_thinking")
		case len(r.Tools) > 0 && way > rungAuto:
			return bad("this model does not support tools")
		case r.JSON && way > rungJSON:
			return bad("response_format of type json_object is not supported")
		case way >= rungJSON:
			return openaitest.Text("```json\n" + saved + "\n```")
		}
		return openaitest.Calls("memory_save", saved)
	}
}

func TestAForcedToolIsAskedForInAWayTheModelTakes(t *testing.T) {
	t.Parallel()
	for way := rungNamed; way <= rungText; way++ {
		for form, streamed := range map[string]bool{"plain": false, "streamed": true} {
			t.Run(way.String()+", "+form, func(t *testing.T) {
				t.Parallel()
				s := openaitest.NewServer(t, refusing(way))
				c := clientOf(t, 0, s)
				c.models[0].whole.Store(!streamed)
				for i, requests := range []int{int(way) + 1, 1} {
					before := len(s.Requests())
					r := forcing("存下来")
					var h heard
					if streamed {
						r.Delta = h.delta
					}
					resp, err := c.Generate(t.Context(), r)
					if err != nil {
						t.Fatal(err)
					}
					if len(resp.ToolCalls) != 1 || resp.ToolCalls[0].Name != "memory_save" || resp.ToolCalls[0].Arguments != saved ||
						resp.ToolCalls[0].ID == "" || resp.Finish != llm.FinishTools || resp.Text != "" {
						t.Errorf("answer %d: %+v", i, resp)
					}
					if resp.Forced != way.String() {
						t.Errorf("answer %d was forced by %q, want %q", i, resp.Forced, way)
					}
					if n := len(s.Requests()) - before; n != requests {
						t.Errorf("answer %d took %d requests, want %d: a refusal is remembered", i, n, requests)
					}
				}
				if bad := s.Illegal(); len(bad) > 0 {
					t.Error(strings.Join(bad, "\n"))
				}
				for _, r := range s.Requests() {
					if r.Kind != openaitest.Flush {
						t.Errorf("request %d is taken for a %s", r.N, r.Kind)
					}
				}
			})
		}
	}
}

func TestProseInsteadOfTheForcedTool(t *testing.T) {
	t.Parallel()
	t.Run("the prompt asks the model in words", func(t *testing.T) {
		t.Parallel()
		s := openaitest.NewServer(t, openaitest.Text("好的，我会存的"), openaitest.Calls("memory_save", saved),
			openaitest.Calls("memory_save", saved))
		c := clientOf(t, 0, s)
		for _, want := range []string{"auto", "named"} { // prose is no refusal: the next call starts as strictly as before
			resp, err := c.Generate(t.Context(), forcing("存下来"))
			if err != nil || resp.Forced != want || len(resp.ToolCalls) != 1 {
				t.Errorf("got %+v, %v, want it forced by %s", resp, err, want)
			}
		}
	})
	t.Run("arguments written as text are taken", func(t *testing.T) {
		t.Parallel()
		s := openaitest.NewServer(t, openaitest.Text("这就存：\n```json\n"+saved+"\n```\n完成。"))
		resp, err := clientOf(t, 0, s).Generate(t.Context(), forcing("存下来"))
		if err != nil || len(resp.ToolCalls) != 1 || resp.ToolCalls[0].Arguments != saved || resp.Text != "" {
			t.Errorf("got %+v, %v", resp, err)
		}
	})
	t.Run("other JSON is not", func(t *testing.T) {
		t.Parallel()
		s := openaitest.NewServer(t, openaitest.When(func(openaitest.Request) bool { return true }, openaitest.Text(`{"ok":true}`)))
		resp, err := clientOf(t, 0, s).Generate(t.Context(), forcing("存下来"))
		if err != nil || len(resp.ToolCalls) != 0 || resp.Text != `{"ok":true}` {
			t.Errorf("got %+v, %v: want the text as it is, for the caller to judge", resp, err)
		}
		if n := len(s.Requests()); n != 3 {
			t.Errorf("%d requests, want 3: as configured, in words, as JSON", n)
		}
	})
}

// Answers that were no use are paid for: they are counted with the one that was, with an error, and where another model
// answers in the end.
func TestProseIsCounted(t *testing.T) {
	t.Parallel()
	took := func(r openaitest.Reply, in, out int) openaitest.Reply { return r.Usage(in, 0, out) }
	words := took(openaitest.Text("好的，我会存的"), 100, 7)
	denied := openaitest.Error(401, "", `{"error":{"message":"no such key"}}`)
	t.Run("then a call", func(t *testing.T) {
		t.Parallel()
		s := openaitest.NewServer(t, words, took(openaitest.Calls("memory_save", saved), 120, 9))
		resp, err := clientOf(t, 0, s).Generate(t.Context(), forcing("存下来"))
		if err != nil || resp.Usage.Prompt != 220 || resp.Usage.Completion != 16 {
			t.Errorf("got %+v, %v", resp.Usage, err)
		}
	})
	t.Run("then an error", func(t *testing.T) {
		t.Parallel()
		resp, err := clientOf(t, 0, openaitest.NewServer(t, words, denied)).Generate(t.Context(), forcing("存下来"))
		class(t, err, llm.Denied)
		if resp.Usage.Prompt != 100 || resp.Usage.Completion != 7 || len(resp.ToolCalls) > 0 || resp.Text != "" {
			t.Errorf("got %+v", resp)
		}
	})
	t.Run("filtered away", func(t *testing.T) {
		t.Parallel()
		resp, err := clientOf(t, 0, openaitest.NewServer(t, took(openaitest.Text("").Finish("content_filter"), 90, 3))).Generate(t.Context(), forcing("存下来"))
		class(t, err, llm.Refused)
		if resp.Usage.Prompt != 90 || resp.Usage.Completion != 3 {
			t.Errorf("got %+v", resp)
		}
	})
	t.Run("then another model", func(t *testing.T) {
		t.Parallel()
		first := openaitest.NewServer(t, words, denied)
		second := openaitest.NewServer(t, took(openaitest.Calls("memory_save", saved), 120, 9))
		resp, err := clientOf(t, 0, first, second).Generate(t.Context(), forcing("存下来"))
		if err != nil || resp.Usage.Prompt != 220 || resp.Usage.Completion != 16 {
			t.Errorf("got %+v, %v", resp.Usage, err)
		}
	})
}

func TestAnotherRefusalIsNotTheWaysFault(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"unpaired results": `{"error":{"message":"messages with role 'tool' must be a response to a preceeding message with 'tool_calls'"}}`, //nolint:misspell // as the provider spells it
		"a bad parameter":  `{"error":{"message":"temperature is out of range"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openaitest.NewServer(t, openaitest.Error(400, "", body), openaitest.Calls("memory_save", saved))
			c := clientOf(t, 0, s)
			_, err := c.Generate(t.Context(), forcing("存下来"))
			class(t, err, llm.Malformed)
			if resp, err := c.Generate(t.Context(), forcing("存下来")); err != nil || resp.Forced != "named" {
				t.Errorf("got %+v, %v: the strictest way should still stand", resp, err)
			}
		})
	}
}

func TestForcingAToolThatIsNotOffered(t *testing.T) {
	t.Parallel()
	r := ask("你好")
	r.Force = "rm"
	_, err := clientOf(t, 0, openaitest.NewServer(t)).Generate(t.Context(), r)
	class(t, err, llm.Malformed)
}

func TestWaysAreLearnedByManyAtOnce(t *testing.T) {
	t.Parallel()
	s := openaitest.NewServer(t, refusing(rungAuto))
	c := clientOf(t, 0, s)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if resp, err := c.Generate(t.Context(), forcing("存下来")); err != nil || resp.Forced != "auto" {
				t.Errorf("got %+v, %v", resp, err)
			}
		})
	}
	wg.Wait()
	if got := c.models[0].lessons.current().way; got != rungAuto {
		t.Errorf("remembered %q", got)
	}
}
