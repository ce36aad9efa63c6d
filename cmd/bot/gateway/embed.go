package gateway

import (
	"context"
	"fmt"
	"sync"

	"ebb/bot/config"
	"ebb/bot/openai"
	"ebb/memory/embed"
)

// embedRetries is how often the background asks a busy endpoint again at once. A search asks it once: its time is short.
const embedRetries = 2

// openEmbedder makes the client of the configured endpoint for embeddings; nil where there is none.
func openEmbedder(e config.EmbeddingsConfig) (*openai.Embedder, error) {
	if e.BaseURL == "" {
		return nil, nil
	}
	return openai.NewEmbedder(openai.EmbedConfig{
		BaseURL: e.BaseURL.Reveal(), APIKey: e.APIKey.Reveal(), Model: e.Model, Dimensions: e.Dimensions, Retries: embedRetries,
	})
}

// fillVectors gives vectors to what has none, in the background, until the function that it returns is called. It does
// nothing where no endpoint is configured, and waits where another replica does it.
func (g *gateway) fillVectors(ctx context.Context) (stop func()) {
	if g.embedder == nil {
		return func() {}
	}
	e := g.cfg.Agent.Memory.Embeddings
	f := &embed.Filler{
		Store: g.store, Embedder: g.embedder, Batch: e.Batch, PerMinute: e.RequestsPerMinute,
		Leads: func(ctx context.Context) (bool, error) { return g.store.IsLeader(ctx, g.replica) },
	}
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { f.Run(ctx) })
	return func() {
		cancel()
		done.Wait()
	}
}

// checkEmbeddings asks the endpoint for one vector.
func CheckEmbeddings(ctx context.Context, cfg *config.Config) (string, error) {
	e, err := openEmbedder(cfg.Agent.Memory.Embeddings)
	if err != nil {
		return "", err
	}
	defer e.Close()
	vectors, err := e.Embed(ctx, []string{"ping"})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s answered a vector of %d numbers", e.Model(), len(vectors[0])), nil
}
