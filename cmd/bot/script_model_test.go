package main

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"ebb/bot/openai/openaitest"
)

// scriptModel is the scripted model of a scenario. It can hold its answers back.
type scriptModel struct {
	*openaitest.Server
	mu        sync.Mutex
	holds     []openaitest.Matcher
	slow      []slowness
	typing    time.Duration // between two pieces of an answer to a question
	sentences int           // in such an answer
	release   chan struct{} // closed and replaced by each release
	largest   int           // prompt, in tokens of the model's own count
	uses      []int         // prompt, cached and completion tokens of each answer, or the cached percentage; nil: as counted
	thought   string        // reasoning in both places that providers have for it; empty: the model does not think
}

// slowness is how much later some requests are answered.
type slowness struct {
	match openaitest.Matcher
	by    time.Duration
}

func startModel() *scriptModel {
	m := &scriptModel{release: make(chan struct{})}
	m.Server = openaitest.New(openaitest.Options{Reply: m.reply, Usage: m.usage, Synonyms: [][]string{{"车库", "停汽车"}}})
	return m
}

func (m *scriptModel) close() {
	m.letGo()
	m.Close()
}

func (m *scriptModel) letGo() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.holds = nil
	close(m.release)
	m.release = make(chan struct{})
}

// reply answers, with the usage that the scenario sets.
func (m *scriptModel) reply(r openaitest.Request) openaitest.Reply {
	answer := m.answer(r)
	switch uses := m.used(); len(uses) {
	case 1:
		prompt, completion := m.usage(r, answer)
		return answer.Usage(prompt, prompt*uses[0]/100, completion)
	case 3:
		return answer.Usage(uses[0], uses[1], uses[2])
	}
	return answer
}

// answer waits where the request is held, and answers.
func (m *scriptModel) answer(r openaitest.Request) openaitest.Reply {
	m.mu.Lock()
	held, release := false, m.release
	for _, match := range m.holds {
		held = held || match(r)
	}
	late := time.Duration(0)
	for _, s := range m.slow {
		if s.match(r) {
			late = s.by
		}
	}
	typing, sentences, thought := m.typing, m.sentences, m.thought
	m.mu.Unlock()
	<-time.After(late)
	if held {
		<-release
	}
	if thought != "" {
		return thinking(r, thought, typing)
	}
	if r.Kind == openaitest.Chat {
		if answers := answersTo(r); answers != "" {
			if seen := r.Seen(); seen != "" {
				answers += " " + seen
			}
			return openaitest.Text(typedAnswer(answers, typing, sentences)).Slow(typing)
		}
	}
	return openaitest.Persona(r)
}

func (m *scriptModel) used() []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.uses
}

// thinking answers like hosted models that think: no tool can be forced meanwhile, and calls need their reasoning.
func thinking(r openaitest.Request, thought string, typing time.Duration) openaitest.Reply {
	bad := func(text string) openaitest.Reply {
		return openaitest.Error(http.StatusBadRequest, "", fmt.Sprintf(`{"error":{"message":%q,"type":"invalid_request_error"}}`, text))
	}
	off := string(r.Raw["enable_thinking"]) == "false"
	if r.ToolChoice != "" && r.ToolChoice != "auto" && !off {
		return bad("<400> InternalError.Algo.InvalidParameter: The tool_choice parameter does not support being set to required or object in thinking mode")
	}
	for i, msg := range r.Messages {
		if len(msg.ToolCalls) > 0 && msg.Reasoning == "" && !off {
			return bad(fmt.Sprintf("thinking is enabled but reasoning_content is missing in assistant tool call message at index %d", i))
		}
	}
	answer := openaitest.Persona(r)
	if answers := answersTo(r); r.Kind == openaitest.Chat && answers != "" {
		answer = openaitest.Text(answers + "：\n```\n<think>\n想法\n</think>\n```\n" + typedEnd)
	}
	if off {
		return answer
	}
	return answer.WithContent("<think>" + thought + "</think>\n" + answer.Content()).Thinking(thought).Pieces(4).Slow(typing)
}

// A typed answer repeats typedSentence, and ends with typedEnd.
const (
	typedSentence = "这是很长的回答。"
	typedEnd      = "以上是全部。"
)

func (m *scriptModel) sentencesOfAnswer() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sentences
}

// typedAnswer is the answer to questions, a long one if it is typed.
func typedAnswer(answers string, typing time.Duration, sentences int) string {
	if typing == 0 {
		return answers
	}
	return answers + strings.Repeat(" "+typedSentence, sentences) + typedEnd
}

// questionRE finds the questions that have a number.
var questionRE = regexp.MustCompile(`\bQ\d+\b`)

// answersTo is the answers to the numbered questions of a request, with a blank between two.
func answersTo(r openaitest.Request) string {
	answers := trimEach(questionRE.FindAllString(askedIn(r), -1), "Q")
	for i := range answers {
		answers[i] = "A" + answers[i]
	}
	return strings.Join(answers, " ")
}

func trimEach(in []string, prefix string) []string {
	var out []string
	for _, s := range in {
		out = append(out, strings.TrimPrefix(s, prefix))
	}
	return out
}

// usage counts a token for each three bytes, and notes the largest prompt.
func (m *scriptModel) usage(r openaitest.Request, _ openaitest.Reply) (prompt, completion int) {
	bytes := 0
	for name, raw := range r.Raw {
		if name == "messages" || name == "tools" {
			bytes += len(raw)
		}
	}
	for _, msg := range r.Messages {
		for _, p := range msg.Pictures { // a picture is paid by its size
			bytes += 3000 - p.Bytes
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.largest = max(m.largest, bytes/3)
	return bytes / 3, 60
}

// askedIn is what people said since the last answer in words.
func askedIn(r openaitest.Request) string {
	var asked []string
	for _, msg := range r.Messages {
		switch {
		case msg.Role == "assistant" && len(msg.ToolCalls) == 0:
			asked = nil
		case msg.Role == "user" && !strings.Contains(msg.Content, "<<<"):
			asked = append(asked, msg.Content)
		}
	}
	return strings.Join(asked, "\n")
}

// which matches the requests that a scenario names: of a kind, or for an answer to certain words.
func which(name string) openaitest.Matcher {
	switch k := openaitest.Kind(name); k {
	case openaitest.Chat, openaitest.Flush, openaitest.Summary:
		return openaitest.IsKind(k)
	}
	if name == "transcript" { // a request for a summary that is no repair of a draft
		return func(r openaitest.Request) bool {
			return r.Kind == openaitest.Summary && strings.Contains(r.Text(), "<<<transcript ")
		}
	}
	return func(r openaitest.Request) bool { return r.Kind == openaitest.Chat && hasWord(askedIn(r), name) }
}

// hasWord says whether text has want in it, and not as the beginning of a longer number: A1 is not in A12.
func hasWord(text, want string) bool {
	for rest := text; ; {
		i := strings.Index(rest, want)
		if i < 0 {
			return false
		}
		rest = rest[i+len(want):]
		if last := want[len(want)-1]; last < '0' || last > '9' || rest == "" || rest[0] < '0' || rest[0] > '9' {
			return true
		}
	}
}

func (m *scriptModel) count(match openaitest.Matcher) int {
	n := 0
	for _, r := range m.Requests() {
		if match(r) {
			n++
		}
	}
	return n
}

func (w *world) cmdModel(args []string) error {
	m := w.main
	switch verb := args[0]; {
	case verb == "release":
		m.letGo()
		return nil
	case verb == "spare":
		err := w.addSpare(slices.Contains(args, "able"))
		if slices.Contains(args, "blind") {
			w.spare.Behave("no_pictures")
		}
		return err
	case verb == "behave": // like the named providers from now on; without names like an ordinary one
		m.Behave(args[1:]...)
		return nil
	case len(args) < 2:
		return fmt.Errorf("model %s?", verb)
	case verb == "hold":
		m.mu.Lock()
		defer m.mu.Unlock()
		m.holds = append(m.holds, which(args[1]))
		return nil
	case verb == "fault":
		return m.fault(args[1:])
	case verb == "slow":
		by, err := time.ParseDuration(third(args))
		m.mu.Lock()
		defer m.mu.Unlock()
		m.slow = append(m.slow, slowness{which(args[1]), by})
		return err
	case verb == "thinks":
		m.mu.Lock()
		defer m.mu.Unlock()
		m.thought = args[1]
		return nil
	case verb == "uses":
		return m.use(args[1:])
	case verb == "types":
		d, err := time.ParseDuration(args[1])
		sentences := 20
		if err == nil && len(args) > 2 {
			sentences, err = strconv.Atoi(args[2])
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.typing, m.sentences = d, sentences
		return err
	case verb == "asked":
		return w.modelAsked(args[1:])
	case verb == "saw":
		if !hasWord(m.newest(), args[1]) {
			return fmt.Errorf("%q is not in the newest chat request", args[1])
		}
		return nil
	}
	n, err := strconv.Atoi(args[len(args)-1])
	switch {
	case err != nil:
		return fmt.Errorf("model %s: %w", args[0], err)
	case args[0] == "calls" && len(args) == 3:
		return w.modelCalls(args[1], n)
	case args[0] == "cycles":
		return m.cycles(n)
	case args[0] == "peak" && m.Peak() > n:
		return fmt.Errorf("%d requests were under way at once", m.Peak())
	case args[0] == "peak":
		return nil
	case args[0] == "within":
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.largest > n {
			return fmt.Errorf("a request had %d tokens, want at most %d", m.largest, n)
		}
		return nil
	}
	return fmt.Errorf("model %s?", args[0])
}

func (w *world) cmdNotModel(args []string) error {
	if len(args) != 2 || args[0] != "saw" {
		return fmt.Errorf("model %s can't be negated", args[0])
	}
	if hasWord(w.main.newest(), args[1]) {
		return fmt.Errorf("%q is in the newest chat request", args[1])
	}
	return nil
}

// use is: PROMPT CACHED COMPLETION, the tokens that each answer reports from now on, or PERCENT, the cached part of the
// counted prompt.
func (m *scriptModel) use(args []string) error {
	var uses []int
	for _, a := range args {
		n, err := strconv.Atoi(a)
		if err != nil {
			return err
		}
		uses = append(uses, n)
	}
	if len(uses) != 3 && len(uses) != 1 {
		return fmt.Errorf("model uses PROMPT CACHED COMPLETION, or PERCENT")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uses = uses
	return nil
}

func (w *world) modelAsked(args []string) error {
	want := 1
	if len(args) > 1 {
		var err error
		if want, err = strconv.Atoi(args[1]); err != nil {
			return err
		}
	}
	return w.until(fmt.Sprintf("%d requests of %s", want, args[0]), patience, func() (bool, string) {
		n := w.main.count(which(args[0]))
		return n >= want, fmt.Sprintf("%d came", n)
	})
}

func (w *world) modelCalls(name string, want int) error {
	if err := w.settle(); err != nil {
		return err
	}
	if n := w.main.count(which(name)); n != want {
		return fmt.Errorf("%d requests of %s, want %d", n, name, want)
	}
	return nil
}

// newest is the text of the newest chat request.
func (m *scriptModel) newest() string {
	chats := m.RequestsOf(openaitest.Chat)
	if len(chats) == 0 {
		return ""
	}
	return chats[len(chats)-1].Text()
}

// providerText is a provider's error text, which must not reach a group.
const providerText = "provider-secret-text: Incorrect API key provided: sk-scenario-key"

// faults are the ways in which a request can go wrong, besides statuses.
var faults = map[string]openaitest.Reply{
	"cut":    openaitest.Text(strings.Repeat("这是说到一半的话。", 20)).BreakAfter(3),
	"ends":   openaitest.Text(strings.Repeat("这是说到一半的话。", 20)).EndAfter(3),
	"empty":  openaitest.Text(""),
	"length": openaitest.Text("这是前一半").Finish("length"),
	"filter": openaitest.Text("").Finish("content_filter"),
	"error":  openaitest.Text("部署步骤：先停旧服务，然后执行").Finish("network_error"),
	"held":   openaitest.Text("部署步骤：先停旧服务，然后执行").Finish("content_filter"),
	"hang":   openaitest.Hang(),
	"quiet":  openaitest.Text(strings.Repeat("这是说到一半的话。", 20)).QuietAfter(3),
	"overflow": openaitest.Error(http.StatusBadRequest, "",
		`{"error":{"message":"This model's maximum context length is 16000 tokens. However, your messages resulted in 20000 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`),
}

// fault is: which, what, how often, Retry-After.
func (m *scriptModel) fault(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("model fault WHICH WHAT [N] [RETRY-AFTER]")
	}
	times, after := 1, ""
	if len(args) > 2 {
		var err error
		if times, err = strconv.Atoi(args[2]); err != nil {
			return err
		}
	}
	if len(args) > 3 {
		after = args[3]
	}
	reply, ok := faults[args[1]]
	if !ok {
		status, err := strconv.Atoi(args[1])
		if err != nil {
			return fmt.Errorf("no fault %q", args[1])
		}
		reply = openaitest.Error(status, after, fmt.Sprintf(`{"error":{"message":%q,"type":"error"}}`, providerText))
	}
	m.Add(openaitest.When(which(args[0]), reply).Times(times))
	return nil
}

// addSpare adds a second model to the config. Its answers begin with the word "备用". Only one that is able writes summaries
// and saves memories.
func (w *world) addSpare(able bool) error {
	w.spare = &scriptModel{release: make(chan struct{})}
	w.spare.Server = openaitest.New(openaitest.Options{
		Reply: func(r openaitest.Request) openaitest.Reply {
			if able && r.Kind != openaitest.Chat {
				return openaitest.Persona(r)
			}
			return openaitest.Text(strings.TrimSpace("备用模型的回答 " + answersTo(r) + " " + r.Seen()))
		},
		Usage: w.spare.usage,
	})
	llm := w.config["llm"].(map[string]any)
	llm["models"] = append(llm["models"].([]any), map[string]any{
		"name": "spare", "base_url": w.spare.URL, "api_key": "sk-spare-key", "model": "qwen-turbo",
	})
	return nil
}

// cycles checks that memory was flushed before each compaction, by a forced memory_save, and once. It also checks the
// least number of compactions.
func (m *scriptModel) cycles(least int) error {
	flushes, compactions := 0, 0
	flushed, drafted := false, which("transcript")
	for _, r := range m.Requests() {
		switch {
		case r.Kind == openaitest.Flush:
			if r.ToolChoice != "memory_save" {
				return fmt.Errorf("flush %d does not force memory_save, but %q", flushes+1, r.ToolChoice)
			}
			if flushed {
				return fmt.Errorf("flush %d comes without a compaction after the last", flushes+1)
			}
			flushed = true
			flushes++
		case drafted(r): // a repair is no compaction of its own
			if !flushed {
				return fmt.Errorf("compaction %d comes without a flush before it", compactions+1)
			}
			flushed = false
			compactions++
		}
	}
	if compactions < least || flushes > compactions+1 {
		return fmt.Errorf("%d flushes and %d compactions, want at least %d compactions and at most one flush more", flushes, compactions, least)
	}
	return nil
}
