package answer_test

import (
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/wording"
	"ebb/sessions"
	"ebb/sessions/llm"
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
		"once":  {[]llm.Response{garbled, bottest.Text("at eight")}, "at eight"},
		"twice": {[]llm.Response{garbled, garbled}, "one moment"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Chat: bottest.Rounds(c.answers...)}})
				w.Say("m1", "alice", "when?")
				bottest.Want(t, "replies", w.Wire.Texts(), []string{c.want})
				asked := w.Model.Requests("chat")
				bottest.Want(t, "requests", len(asked), 2)
				bottest.Want(t, "the second request", bottest.LastWords(asked[1]), bottest.LastWords(asked[0]))
				if used := w.State(bottest.Group).Usage; used.Prompt < 10 {
					t.Errorf("usage is %+v", used)
				}
				w.LegalLog()
			})
		})
	}
}

// Words without end are followed by a note, and counted. That Ebb ended the call casts no doubt on the model's reports.
func TestRepetitionHasANote(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { c.Metrics = registry }, Model: &bottest.Script{Chat: bottest.Rounds(llm.Response{
			Text: "go go", Finish: llm.FinishRepeats, Model: "fake", Corrected: []checked.Kind{checked.Repeated},
			Usage: sessions.Usage{Prompt: 10, Completion: 2}, Guessed: true,
		})}})
		w.Say("m1", "alice", "when?")
		bottest.Want(t, "replies", w.Wire.Texts(), []string{"go go" + wording.Say(wording.Repeats, "en")})
		bottest.Want(t, "corrections", bottest.Counters(t, registry, "ebb_model_answers_corrected_total", "correction"), map[string]float64{"repetition": 1})
		bottest.Want(t, "doubted reports", len(bottest.Counters(t, registry, "ebb_model_reports_doubted_total", "model")), 0)
	})
}

// A request names the people of its group as it shows them, and in a private chat no one.
func TestVoicesOfARequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{})
		w.Say("m1", "alice", "one")
		w.Say("m2", "bob", "two")
		private := bottest.Said("m3", "alice", "three")
		private.ConversationID, private.ConversationType = "p1", sessions.Private
		w.Post(private)
		synctest.Wait()
		asked := w.Model.Requests("chat")
		bottest.Want(t, "voices", asked[1].Voices, llm.ShownNames{Self: asked[1].Voices.Self, Speakers: []string{"alice(u-alice)", "bob(u-bob)"}, Askers: []string{"bob(u-bob)"}, Question: "two"})
		bottest.Want(t, "voices in private", asked[2].Voices, llm.ShownNames{Self: asked[1].Voices.Self, Question: "three"})
		if asked[1].Voices.Self == "" {
			t.Error("the bot has no name")
		}
	})
}
