package config

import (
	"fmt"
	"net/url"
	"strings"
	"time"
)

// checkModelURL refuses a base_url with the path of an API function, which clients append.
func (k checker) checkModelURL(path, got string) {
	k.httpURL(path, got)
	if u, err := url.Parse(got); err == nil && strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/chat/completions") && !k.failed(path) {
		k.fail(path, "got an address that ends in /chat/completions, want the part before it, up to and including the version, as in https://host/v1")
	}
}

// fitModels removes the inherited key of a model of another provider than the first model's, and warns of such models.
func (c *Config) fitModels(src *source) {
	for i := range c.LLM.Models {
		m, path := &c.LLM.Models[i], fmt.Sprintf("llm.models[%d].api_key", i)
		_, listed := src.at[fmt.Sprintf("llm.models[%d]", i)]
		_, given := src.at[path]
		switch {
		case !listed || given:
		case i > 0 && hostOf(m.BaseURL.Reveal()) != hostOf(c.LLM.Models[0].BaseURL.Reveal()):
			m.APIKey = ""
			c.warn(src.warning(path, `no key is sent: %s is another host than that of llm.models[0], whose key is in LLM_API_KEY; say api_key, or "" for none`, hostOf(m.BaseURL.Reveal())))
		case m.APIKey == "":
			c.warn(src.warning(path, `no key is sent: LLM_API_KEY is not set; say api_key, or "" for none`))
		}
	}
	c.warnOfTimes(src)
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// warnOfTimes warns of timeouts over the model's share of the time of a turn, or of other work, which is divided
// among the models.
func (c *Config) warnOfTimes(src *source) {
	n := len(c.LLM.Models)
	isGiven := func(path string) bool { _, given := src.at[path]; return given }
	for _, work := range []struct {
		path  string
		whole time.Duration
		check bool
	}{
		{"agent.turn_timeout", c.Agent.TurnTimeout, n > 1},
		{commonPath + "deadline", c.Agent.Compaction.Deadline, n > 1},
		{commonPath + "inline_deadline", c.Agent.Compaction.InlineDeadline, n > 1 && isGiven(commonPath+"inline_deadline")},
	} {
		share := work.whole / time.Duration(max(1, n))
		for i, m := range c.LLM.Models {
			path := fmt.Sprintf("llm.models[%d].", i)
			switch of := fmt.Sprintf("its share of %s (%s for %d models)", work.path, durationText(work.whole), n); {
			case !work.check:
			case i < n-1 && m.FirstToken > share:
				c.warn(src.warning(path+"first_token_timeout", "%s is more than %s, %s: the next model is asked earlier",
					durationText(m.FirstToken), durationText(share), of))
			case work.path == "agent.turn_timeout" && m.Timeout > share:
				c.warn(src.warning(path+"timeout", "%s is more than %s, %s: a longer answer is cut off",
					durationText(m.Timeout), durationText(share), of))
			}
		}
	}
}

// Unpriced returns the names of models without a price.
func (l *LLMConfig) Unpriced() (names []string) {
	for _, m := range l.Models {
		if m.PriceIn == 0 && m.PriceOut == 0 {
			names = append(names, m.Name)
		}
	}
	return names
}
