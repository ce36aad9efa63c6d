package openai

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"ebb/bot/openai/openaitest"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// talk is an ordinary request in the middle of a turn: neighbours of one role, repeated call ids, empty
// contents, a result at the end.
func talk() llm.Request {
	r := ask("")
	r.Tools = []llm.ToolSpec{searchSpec, {Name: "memory_save", Description: "Saves facts.", Schema: map[string]any{
		"type": "object", "properties": map[string]any{
			"facts":           map[string]any{"type": "array", "maxItems": 9, "items": map[string]any{"type": "object", "properties": map[string]any{"text": map[string]any{"type": "string"}}}},
			"nothing_to_save": map[string]any{"type": "boolean"},
		},
	}}}
	called := func(query string) llm.Message {
		return llm.Message{Role: "assistant", ToolCalls: []sessions.ToolCall{{ID: "memory_search:0", Name: "memory_search", Arguments: `{"query":"` + query + `"}`}}}
	}
	r.Messages = []llm.Message{
		{Role: "system", Content: "You are Ebb."},
		{Role: "user", Content: "[2026-03-02 12:02 Monday CST]"},
		{Role: "user", Content: "Ann(u1): who deploys?"},
		called("deploy"),
		{Role: "tool", ToolCallID: "memory_search:0", Content: "Bob deploys"},
		{Role: "assistant", Content: "Bob."},
		{Role: "user", Content: "[12:03]"},
		{Role: "user", Content: "Ann(u1): and when?"},
		called("when"),
		{Role: "tool", ToolCallID: "memory_search:0", Content: "on Friday"},
	}
	return r
}

func serverOf(t *testing.T, reply openaitest.Func, behaviours ...string) *openaitest.Server {
	t.Helper()
	s := openaitest.New(openaitest.Options{Reply: reply, Behaviours: behaviours})
	t.Cleanup(s.Close)
	return s
}

// answers says yes, or calls the tool that must be called.
func answers(r openaitest.Request) openaitest.Reply {
	switch {
	case r.Kind == openaitest.Flush && len(r.Tools) > 0:
		return openaitest.Calls("memory_save", saved)
	case r.Kind == openaitest.Flush:
		return openaitest.Text(saved)
	}
	return openaitest.Text("好")
}

func formNames() (names []string) {
	for _, b := range openaitest.FormBehaviours() {
		names = append(names, strings.TrimSuffix(b.Name+":"+b.Example, ":"))
	}
	return names
}

// Each provider with a form of its own answers an ordinary request and a forced tool. The form is learned: later calls have
// no refused request. It is logged once, without a word of the provider.
func TestFormsAreLearned(t *testing.T) {
	t.Parallel()
	pairs := []string{"no_system_role alternating_roles", "id_format unique_ids no_name_field", "content_string no_tools", "strict_fields max_output:8192 completion_tokens", "gemma max_output:4096"}
	for _, names := range append(formNames(), pairs...) {
		for form, streamed := range map[string]bool{"plain": false, "streamed": true} {
			t.Run(names+", "+form, func(t *testing.T) {
				t.Parallel()
				s := serverOf(t, answers, strings.Fields(names)...)
				c := clientOf(t, 0, s)
				warm := float32(0.3)
				c.models[0].conf.Temperature, c.models[0].conf.Params = &warm, map[string]any{"top_k": 20}
				c.models[0].whole.Store(!streamed)
				var log bytes.Buffer
				ctx := zerolog.New(&log).WithContext(t.Context())
				for i := range 4 {
					r := talk()
					r.MaxOutput = 20000
					blind := strings.HasPrefix(names, "no_pictures")
					if blind {
						show(&r)
					}
					if i%2 == 1 {
						r.Force = "memory_save"
					}
					var h heard
					if streamed {
						r.Delta = h.delta
					}
					before := len(s.Requests())
					resp, err := c.Generate(ctx, r)
					if err != nil {
						t.Fatalf("call %d, after %d requests: %v", i, len(s.Requests())-before, err)
					}
					if r.Force == "" && (resp.Text != "好" || streamed && h.text.String() != "好") || r.Force != "" && !called(resp, "memory_save") {
						t.Errorf("call %d: %+v, the reader saw %q", i, resp, h.text.String())
					}
					if resp.Blind != (blind && r.Force == "") {
						t.Errorf("call %d: blind is %t", i, resp.Blind)
					}
					if n := len(s.Requests()) - before; i >= 2 && n != 1 || n > maxChanges {
						t.Errorf("call %d took %d requests", i, n)
					}
					if len(resp.Parts) != 1 || resp.Parts[0].Requests != 1 {
						t.Errorf("call %d: parts %+v", i, resp.Parts)
					}
				}
				text := log.String()
				for _, p := range c.Learned("a") {
					if strings.Count(text, `"property":"`+p) != 1 {
						t.Errorf("%q is logged %d times", p, strings.Count(text, p))
					}
				}
				taken := []string{"unique_ids", "content_required", "no_name_field", "min_output:16", "min_output_thoughts:256", "min_output_silent:16"} // the ordinary form
				if !streamed {
					taken = append(taken, "no_stream", "no_stream_options")
				}
				if slices.Contains(taken, names) != (len(c.Learned("a")) == 0) || slices.Contains(taken, names) && len(s.Requests()) != 4 {
					t.Errorf("learned %q in %d requests", c.Learned("a"), len(s.Requests()))
				}
			})
		}
	}
}

// show puts a picture into the first message of a person.
func show(r *llm.Request) {
	r.Messages = slices.Clone(r.Messages)
	at := slices.IndexFunc(r.Messages, func(m llm.Message) bool { return m.Role == "user" })
	r.Messages[at].Pictures = []llm.Picture{{At: 0, Type: "image/png", Body: []byte("png")}, {At: len(r.Messages[at].Content), Type: "image/png", Body: []byte("png")}}
}

// The configuration may say that a model sees, or sees nothing. Then no refusal is needed to know it, and none teaches the opposite.
func TestVisionIsConfigured(t *testing.T) {
	t.Parallel()
	for _, sees := range []bool{true, false} {
		s := serverOf(t, answers, "no_pictures")
		c, err := New(Config{Models: []ModelConfig{{Name: "a", BaseURL: s.URL, APIKey: testKey, Model: "scripted", Vision: &sees}}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		r := talk()
		show(&r)
		resp, err := c.Generate(t.Context(), r)
		if sees && err == nil || !sees && (err != nil || !resp.Blind || len(s.Requests()) != 1) {
			t.Errorf("vision %t: blind %t after %d requests, %v", sees, resp.Blind, len(s.Requests()), err)
		}
		if last := s.Requests()[len(s.Requests())-1]; strings.Contains(last.Text(), unseen) == sees {
			t.Errorf("vision %t: the request is %q", sees, last.Text())
		}
	}
}

// Pictures stand between the words of their message, also where messages are merged into one.
func TestPicturesKeepTheirPlaces(t *testing.T) {
	t.Parallel()
	for _, behaviours := range [][]string{nil, {"alternating_roles"}, {"no_system_role", "alternating_roles"}, {"content_parts"}} {
		s := serverOf(t, answers, behaviours...)
		c := clientOf(t, 0, s)
		_, err := c.Generate(t.Context(), llm.Request{Messages: []llm.Message{
			{Role: "system", Content: "S"}, {Role: "user", Content: "前面"},
			{Role: "user", Content: "看[图片]和[图片]吧", Pictures: []llm.Picture{{At: 11, Type: "image/png", Body: []byte("1")}, {At: 22, Type: "image/png", Body: []byte("2")}}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		last := s.Requests()[len(s.Requests())-1].Last()
		if len(last.Pictures) != 2 || !strings.HasSuffix(last.Pictures[0].After, "看[图片]") || last.Pictures[1].After != "和[图片]" || !strings.HasSuffix(last.Content, "吧") {
			t.Errorf("%v: %+v in %q", behaviours, last.Pictures, last.Content)
		}
	}
}

// A probe asks for one token. A model that takes no limit that low is asked with a higher one, and the next probe knows it. A refusal
// of the content stays one.
func TestShortLimitsAreRaised(t *testing.T) {
	t.Parallel()
	for _, names := range []string{
		"min_output:16", "min_output:16 completion_tokens", "min_output_thoughts:64", "min_output_thoughts:256 completion_tokens",
		"min_output_silent:16", "min_output_silent:16 strict_fields",
	} {
		t.Run(names, func(t *testing.T) {
			t.Parallel()
			s := serverOf(t, answers, append(strings.Fields(names), "refuses_word:敏感词甲")...)
			c := clientOf(t, 0, s)
			for i := range 2 {
				r := talk()
				r.Kind, r.MaxOutput, r.Requests = llm.KindProbe, 1, 1
				before := len(s.Requests())
				if _, err := c.Generate(t.Context(), r); err != nil {
					t.Fatalf("probe %d, after %d requests: %v", i, len(s.Requests())-before, err)
				}
				if n := len(s.Requests()) - before; i > 0 && n != 1 {
					t.Errorf("probe %d took %d requests", i, n)
				}
			}
			r := ask("敏感词甲")
			r.Kind, r.MaxOutput, r.Requests = llm.KindProbe, 1, 1
			before := len(s.Requests())
			_, err := c.Generate(t.Context(), r)
			if class(t, err, llm.Refused); len(s.Requests())-before != 1 {
				t.Errorf("a refused content took %d requests", len(s.Requests())-before)
			}
		})
	}
}

// Calls at the same time learn the same, and none of them fails.
func TestFormsAreLearnedByManyAtOnce(t *testing.T) {
	t.Parallel()
	s := serverOf(t, answers, "gemma", "max_output:8192", "strict_fields")
	c := clientOf(t, 0, s)
	done := make(chan error)
	for range 20 {
		go func() {
			_, err := c.Generate(t.Context(), talk())
			done <- err
		}()
	}
	for range 20 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// A form that did not help is no property of the model: a call that fails all the same teaches nothing.
func TestAWrongLessonIsForgotten(t *testing.T) {
	t.Parallel()
	const body = `{"error":{"message":"this model does not support tools"}}`
	s := openaitest.NewServer(t, openaitest.Error(400, "", body), openaitest.Error(400, "", body), openaitest.Calls("memory_search", `{"query":"x"}`))
	c := clientOf(t, 0, s)
	_, err := c.Generate(t.Context(), ask("你好"))
	class(t, err, llm.Malformed)
	if got := c.Learned("a"); len(got) > 0 {
		t.Errorf("learned %q", got)
	}
	if resp, err := c.Generate(t.Context(), ask("你好")); err != nil || len(resp.ToolCalls) != 1 {
		t.Errorf("got %+v, %v: the tools are offered again", resp, err)
	}
}

// A refusal without a known reason changes what no answered request had, once for the process. Later ones are not the form's.
func TestUnknownRefusalsSuspectTheFormOnce(t *testing.T) {
	t.Parallel()
	s := serverOf(t, answers, "repeats_request:400")
	c := clientOf(t, 0, s)
	for _, want := range []int{2, 1} {
		before := len(s.Requests())
		_, err := c.Generate(t.Context(), talk())
		if class(t, err, llm.Malformed); len(s.Requests())-before != want {
			t.Errorf("%d requests, want %d", len(s.Requests())-before, want)
		}
	}
	known := serverOf(t, answers)
	c = clientOf(t, 0, known)
	if _, err := c.Generate(t.Context(), talk()); err != nil {
		t.Fatal(err)
	}
	known.Behave("repeats_request:400")
	_, err := c.Generate(t.Context(), talk())
	if class(t, err, llm.Malformed); len(known.Requests()) != 2 {
		t.Errorf("%d requests, want 2: the form was accepted before", len(known.Requests()))
	}
}

// A model without tools reads their results as text, and the words beside calls.
func TestWithoutToolsResultsAreText(t *testing.T) {
	t.Parallel()
	s := serverOf(t, answers, "no_tools")
	if _, err := clientOf(t, 0, s).Generate(t.Context(), talk()); err != nil {
		t.Fatal(err)
	}
	q := s.Requests()
	last := q[len(q)-1]
	text := last.Text()
	if len(last.Tools) > 0 || !strings.Contains(text, "Result of memory_search:\nBob deploys") || !strings.Contains(text, "Result of memory_search:\non Friday") ||
		slices.ContainsFunc(last.Messages, func(m openaitest.Message) bool { return m.Role == "tool" || len(m.ToolCalls) > 0 }) {
		t.Errorf("sent %+v", last.Messages)
	}
}

// The messages fit, and the answer beside them does not: a shorter one is asked for, by this call alone.
func TestAShorterAnswerFitsIntoTheWindow(t *testing.T) {
	t.Parallel()
	s := openaitest.NewServer(t,
		openaitest.Error(400, "", `{"object":"error","message":"This model's maximum context length is 8192 tokens. However, you requested 21000 tokens (1000 in the messages, 20000 in the completion). Please reduce the length of the messages or completion.","code":400}`),
		openaitest.Text("好"), openaitest.Text("好"))
	c := clientOf(t, 0, s)
	for range 2 {
		r := ask("你好")
		r.MaxOutput = 20000
		if _, err := c.Generate(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	var sent []string
	for _, r := range s.Requests() {
		sent = append(sent, string(r.Raw["max_tokens"]))
	}
	if got := strings.Join(sent, " "); got != "20000 7191 20000" {
		t.Errorf("max_tokens %s", got)
	}
}

// Fields of the provider are in each request, also where a tool is forced without thinking: Ebb's own fields win.
func TestParamsAreMerged(t *testing.T) {
	t.Parallel()
	s := serverOf(t, refusing(rungNoThinking))
	c := clientOf(t, 0, s)
	c.models[0].conf.Params = map[string]any{"enable_search": true, "enable_thinking": true, "model": "x", "chat_template_kwargs": map[string]any{"a": 1, "enable_thinking": true}}
	if _, err := c.Generate(t.Context(), forcing("存下来")); err != nil {
		t.Fatal(err)
	}
	q := s.Requests()
	first, last := q[0].Raw, q[len(q)-1].Raw
	if string(first["enable_search"]) != "true" || string(first["enable_thinking"]) != "true" || q[0].Model != "scripted" ||
		string(last["enable_search"]) != "true" || string(last["enable_thinking"]) != "false" || string(last["chat_template_kwargs"]) != `{"a":1,"enable_thinking":false}` {
		t.Errorf("sent %s and then %s", first, last)
	}
}

func TestTheLimitIsReadFromTheRefusal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"Invalid max_tokens value, the valid range of max_tokens is [1, 8192]":                                             8192,
		"max_tokens is too large: 20000. This model supports at most 16384 completion tokens, whereas you provided 20000.": 16384,
		"max_tokens: 20000 > 8,192, which is the maximum allowed for claude-3-5-sonnet-20241022":                           8192,
		"max_tokens 最大支持 8K":                         8192,
		"Range of max_tokens should be [1, 2000]":    2000,
		"max_tokens of glm-4-9b must be less":        0,
		"Request 4f3c-8812: max_tokens is too large": 0,
	} {
		if got := largestBelow(leastOutput, 20000, text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
