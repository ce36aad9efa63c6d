package command_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/wording"
	"ebb/sessions"
)

// Configured rights replace those of commands. Uses that affect other people's data stay with administrators.
func TestConfiguredRights(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) {
			c.CommandRights = map[string]string{
				"status": "admin", "new": "anyone", "forget": "anyone", "compact": "admin",
			}
		}})
		ask := func(id, words string, private bool) string {
			m := bottest.Said(id, "alice", words)
			m.Admin, m.External = id == "m6", id == "m6"
			if private {
				m.ConversationType, m.ConversationID = sessions.Private, "p1"
			}
			w.Post(m)
			bottest.After(time.Second)
			all := w.Wire.Texts()
			return all[len(all)-1]
		}
		refused := wording.Say(wording.NotAdmin, "en")
		bottest.Want(t, "a command for administrators now", ask("m1", "/status", false), refused)
		bottest.Want(t, "an owner's command for administrators now", ask("m2", "/compact log", true), refused)
		bottest.Want(t, "a command for another person's data", ask("m3", "/forget @bob", false), refused)
		bottest.Want(t, "an administrator of another organization", ask("m6", "/status", false), refused)
		if got := ask("m4", "/new", false); got == refused {
			t.Error("a command for everyone was refused")
		}
		if help := ask("m5", "/help", false); strings.Contains(help, "/status") || !strings.Contains(help, "`/new` begins") {
			t.Errorf("the help is %q, want the commands with their rights in force", help)
		}
	})
}
