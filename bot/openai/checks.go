package openai

import (
	"context"

	"github.com/rs/zerolog"

	"ebb/sessions/llm"
	"ebb/sessions/written"
)

// checksOf is how an answer is checked. Only the answers of turns are read by people; others are checked by their readers.
func checksOf(r llm.Request) written.Config {
	c := written.Config{
		Turn: r.Kind == llm.KindTurn || r.Kind == "" || r.Force != "", Self: r.Voices.Self, Speakers: r.Voices.Speakers, Askers: r.Voices.Askers, Question: r.Voices.Question,
	}
	for _, t := range r.Tools {
		c.Tools = append(c.Tools, written.Tool{Name: t.Name, Schema: t.Schema})
	}
	return c
}

func logCorrections(ctx context.Context, resp llm.Response) {
	if len(resp.Corrected) == 0 {
		return
	}
	var kinds []string
	for _, k := range resp.Corrected {
		kinds = append(kinds, string(k))
	}
	zerolog.Ctx(ctx).Info().Str("model", resp.Model).Strs("corrections", kinds).Msg("Answer corrected")
}
