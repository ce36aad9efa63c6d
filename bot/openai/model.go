package openai

import (
	"net/http"
	"sync/atomic"

	goopenai "github.com/sashabaranov/go-openai"

	"ebb/sessions/llm"
)

// model is an endpoint, and what its refusals and answers taught.
type model struct {
	conf     *ModelConfig
	api      *goopenai.Client
	breaker  *breaker
	writer   writer
	lessons  *lessons
	untagged atomic.Bool // its reasoning has no opening tag
	whole    atomic.Bool // answers in one piece despite a requested stream
}

// newModel returns the model of a checked configuration. The breaker waits as long as a first token may take, so that a slow model is
// no broken one.
func newModel(mc *ModelConfig, transport *http.Transport) *model {
	conf := goopenai.DefaultConfig(mc.APIKey)
	conf.BaseURL = mc.BaseURL
	conf.HTTPClient = doer{&http.Client{Transport: transport}}
	return &model{
		conf: mc, api: goopenai.NewClientWithConfig(conf), breaker: newBreaker(mc.FirstToken),
		writer: writer{conf: mc, tools: newEncodedTools()}, lessons: newLessons(mc),
	}
}

func (m *model) buildCall(r llm.Request, way rung, f forms) call {
	return m.writer.buildCall(r, way, f, m.whole.Load())
}

// learnTags learns whether the model's template writes the opening tag of its reasoning. Later answers of such a
// model are not streamed before the closing tag.
func (m *model) learnTags(cl call, a *answer) {
	_, forced := cl.body["tool_choice"]
	switch untagged := a.filter.Untagged(); {
	case untagged:
		m.untagged.Store(true)
	case a.text != "" && !forced: // a forced call may have no reasoning
		m.untagged.Store(false)
	}
}
