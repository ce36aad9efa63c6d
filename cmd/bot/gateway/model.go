package gateway

import (
	"ebb/bot/config"
	"ebb/bot/openai"
)

// OpenModel returns the client of the configured models.
func OpenModel(cfg *config.Config) (*openai.Client, error) {
	conf := openai.Config{Default: cfg.LLM.Default}
	for _, m := range cfg.LLM.Models {
		mc := openai.ModelConfig{
			Name: m.Name, BaseURL: m.BaseURL.Reveal(), APIKey: m.APIKey.Reveal(), Model: m.Model, MaxOutput: m.MaxOutput,
			Timeout: m.Timeout, FirstToken: m.FirstToken, PriceIn: m.PriceIn, PriceCached: m.PriceCached, PriceOut: m.PriceOut, Params: m.Params, Retries: m.Retries, Vision: m.Vision,
		}
		if m.Temperature != nil {
			t := float32(*m.Temperature)
			mc.Temperature = &t
		}
		conf.Models = append(conf.Models, mc)
	}
	return openai.New(conf)
}
