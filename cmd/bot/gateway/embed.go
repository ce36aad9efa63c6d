package gateway

import (
	"context"
	"fmt"
	"sync"

	"ebb/bot"
	"ebb/bot/config"
	"ebb/bot/openai"
	"ebb/memory/embed"
	"ebb/sessions/llm"
)

// embedRetries is for the background. A search makes one attempt: its time is short.
const embedRetries = 2

// openEmbedder returns nil without a configured endpoint.
func openEmbedder(e config.EmbeddingsConfig) (*openai.Embedder, error) {
	if e.BaseURL == "" {
		return nil, nil
	}
	return openai.NewEmbedder(openai.EmbedConfig{
		BaseURL: e.BaseURL.Reveal(), APIKey: e.APIKey.Reveal(), Model: e.Model, Dimensions: e.Dimensions, Retries: embedRetries,
	})
}

// refusals reports requests for vectors that the endpoint refuses.
func (g *gateway) refusals() interface {
	Report(watch func(context.Context, []llm.Part))
} {
	if g.embedder == nil {
		return bot.NoEmbeddings{}
	}
	return g.embedder
}

// fillVectors embeds rows without a vector until stop, on the leader. It does nothing without an endpoint.
func (g *gateway) fillVectors(ctx context.Context) (stop func()) {
	if g.embedder == nil {
		return func() {}
	}
	e := g.cfg.Agent.Memory.Embeddings
	f := &embed.Filler{
		Store: g.store.Vectors, Embedder: g.embedder, Batch: e.Batch, PerMinute: e.RequestsPerMinute, Leads: g.isLeader,
	}
	return inBackground(ctx, f.Run)
}

// isLeader reports whether this replica does the work for which one is enough.
func (g *gateway) isLeader(ctx context.Context) (bool, error) {
	return g.store.Replicas.IsLeader(ctx, g.replica)
}

// stop waits for the end of work.
func inBackground(ctx context.Context, work func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { work(ctx) })
	return func() {
		cancel()
		done.Wait()
	}
}

// CheckEmbeddings requests one vector and describes it.
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
