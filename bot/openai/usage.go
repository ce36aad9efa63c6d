package openai

import (
	"strconv"
	"strings"

	"ebb/sessions"
)

// usage is a provider's report, under the names of several providers.
type usage struct {
	Prompt     count `json:"prompt_tokens"`
	Input      count `json:"input_tokens"`
	Completion count `json:"completion_tokens"`
	Output     count `json:"output_tokens"`
	Total      count `json:"total_tokens"`
	Cached     count `json:"cached_tokens"`
	CacheHit   count `json:"prompt_cache_hit_tokens"` // DeepSeek's name
	CacheRead  count `json:"cache_read_input_tokens"` // Anthropic's name
	Details    struct {
		Cached count `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// count is a number of tokens: an integer, a fraction or a text with one. Anything else, and a negative number, is 0.
type count int

// UnmarshalJSON takes any JSON.
func (c *count) UnmarshalJSON(b []byte) error {
	n, err := strconv.ParseFloat(strings.Trim(string(b), `" `), 64)
	if err != nil || !(n > 0) { // also NaN
		n = 0
	}
	*c = count(min(n, 1<<30))
	return nil
}

// mergeUsage keeps the largest figures, since some providers report with each chunk, and end with zeros.
func (u *usage) mergeUsage(v *usage) {
	if v == nil {
		return
	}
	for _, pair := range [][2]*count{
		{&u.Prompt, &v.Prompt}, {&u.Input, &v.Input}, {&u.Completion, &v.Completion}, {&u.Output, &v.Output}, {&u.Total, &v.Total},
		{&u.Cached, &v.Cached}, {&u.CacheHit, &v.CacheHit}, {&u.CacheRead, &v.CacheRead}, {&u.Details.Cached, &v.Details.Cached},
	} {
		*pair[0] = max(*pair[0], *pair[1])
	}
}

// Bounds of what a report may say about a text of known length. Real texts have 1 to 8 bytes a token; runs of blanks have
// more.
const (
	usualBytes    = 4        // bytes of a token, for estimates
	mostBytes     = 16       // bytes of a token at most, in a long text
	longBytes     = 32 << 10 // a shorter request may be of anything
	hiddenTokens  = 32 << 10 // a proxy adds instructions
	thoughtTokens = 64 << 10 // reasoning that is not shown
)

// believeReport returns the usage of an answered request. sent and said are the bytes of the request and of the answer, limit is
// the requested maximum of the output. Figures that are missing or impossible become estimates, so that they neither free
// people from their limits nor exhaust them; guessed reports it of the prompt.
func (u usage) believeReport(sent, said, limit int) (use sessions.Usage, guessed bool) {
	prompt, completion := int(max(u.Prompt, u.Input)), int(max(u.Completion, u.Output))
	cached := int(max(u.Cached, u.CacheHit, u.CacheRead, u.Details.Cached))
	isPrompt := func(n int) bool { return n > 0 && (sent < longBytes || n >= sent/mostBytes) && n <= sent+hiddenTokens }
	if apart := cached > prompt || cached > 0 && int(u.Total) == prompt+cached+completion; apart && isPrompt(prompt+cached) {
		prompt += cached // some count the cached part beside the rest
	}
	if !isPrompt(prompt) {
		prompt, cached, guessed = sent/usualBytes, 0, true
	}
	if completion == 0 || completion < said/mostBytes || completion > max(limit, said)+thoughtTokens {
		completion = (said + usualBytes - 1) / usualBytes
	}
	return sessions.Usage{Prompt: prompt, Cached: min(cached, prompt), Completion: completion}, guessed
}

// usageOfFailure is the usage of a request without a usable answer: only its report, within the bounds.
func (u usage) usageOfFailure(sent, limit int) sessions.Usage {
	if u == (usage{}) {
		return sessions.Usage{}
	}
	use, _ := u.believeReport(sent, 0, limit)
	return use
}
