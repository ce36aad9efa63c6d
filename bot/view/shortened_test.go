package view_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/bottest"
	"ebb/sessions/llm"
)

// A person whose message is too long for a request reads how much of it the model saw; the log has only the model's words.
func TestLongMessageIsNamedShortened(t *testing.T) {
	t.Parallel()
	for lang, words := range map[string][2]string{"zh": {"请总结：", "模型直接读到约 "}, "en": {"Sum it up: ", "the model read about "}} {
		t.Run(lang, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := bottest.Start(t, bottest.Setup{})
				w.Model.Chat = func(_ context.Context, _ llm.Request) (llm.Response, error) { return bottest.Text("noted"), nil }
				w.Say("m1", "alice", words[0]+"short")
				w.Say("m2", "alice", words[0]+bottest.Prose(1, 20_000))
				bottest.After(time.Minute)
				texts := w.Wire.Texts()
				bottest.Want(t, "the answer to a short message", texts[0], "noted")
				if !strings.HasPrefix(texts[1], "noted") || !strings.Contains(texts[1], words[1]) || !strings.Contains(texts[1], "%") {
					t.Errorf("the answer to a long message is %q", texts[1])
				}
				for _, e := range w.Store.EventsOf(t.Context(), bottest.Group) {
					if strings.Contains(e.Content, words[1]) {
						t.Error("the log has the line as the model's words")
					}
				}
			})
		})
	}
}
