package bot

import (
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"

	"ebb/bot/llm"
	"ebb/bot/wording"
	"ebb/sessions"
	checked "ebb/sessions/written"
)

// A call that can't be read is asked for once more, within the turn. Both requests are paid for.
func TestUnusableCallIsAskedForAgain(t *testing.T) {
	t.Parallel()
	garbled := llm.Response{Text: "one moment", Finish: llm.FinishStop, Model: "fake", Corrected: []checked.Kind{checked.Garbled}, Usage: sessions.Usage{Prompt: 10, Completion: 2}}
	for name, c := range map[string]struct {
		answers []llm.Response
		want    string
	}{
		"once":  {[]llm.Response{garbled, text("at eight")}, "at eight"},
		"twice": {[]llm.Response{garbled, garbled}, "one moment"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := start(t, setup{model: &script{chat: rounds(c.answers...)}})
				w.say("m1", "alice", "when?")
				want(t, "replies", w.wire.texts(), []string{c.want})
				asked := w.model.requests("chat")
				want(t, "requests", len(asked), 2)
				want(t, "the second request", lastWords(asked[1]), lastWords(asked[0]))
				if used := w.state(group).Usage; used.Prompt < 10 {
					t.Errorf("usage is %+v", used)
				}
				w.legalLog()
			})
		})
	}
}

// Words without end are followed by a note, and counted. That Ebb ended the call casts no doubt on the model's reports.
func TestRepetitionHasANote(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		w := start(t, setup{config: func(c *Config) { c.Metrics = registry }, model: &script{chat: rounds(llm.Response{
			Text: "go go", Finish: llm.FinishRepeats, Model: "fake", Corrected: []checked.Kind{checked.Repeated},
			Usage: sessions.Usage{Prompt: 10, Completion: 2}, Guessed: true,
		})}})
		w.say("m1", "alice", "when?")
		want(t, "replies", w.wire.texts(), []string{"go go" + wording.Say(wording.Repeats, "en")})
		want(t, "corrections", counters(t, registry, "ebb_model_answers_corrected_total", "correction"), map[string]float64{"repetition": 1})
		want(t, "doubted reports", len(counters(t, registry, "ebb_model_reports_doubted_total", "model")), 0)
	})
}

// A request names the people of its group as it shows them, and in a private chat no one.
func TestVoicesOfARequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{})
		w.say("m1", "alice", "one")
		w.say("m2", "bob", "two")
		private := said("m3", "alice", "three")
		private.ConversationID, private.ConversationType = "p1", sessions.Private
		w.post(private)
		synctest.Wait()
		asked := w.model.requests("chat")
		want(t, "voices", asked[1].Voices, llm.Voices{Self: asked[1].Voices.Self, Speakers: []string{"alice(u-alice)", "bob(u-bob)"}, Askers: []string{"bob(u-bob)"}, Question: "two"})
		want(t, "voices in private", asked[2].Voices, llm.Voices{Self: asked[1].Voices.Self, Question: "three"})
		if asked[1].Voices.Self == "" {
			t.Error("the bot has no name")
		}
	})
}
