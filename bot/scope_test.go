package bot_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/sessions"
)

// A message follows those of its sender that wait when the scope changes: they are answered first, and a stop finds their
// turn. Other members, and later messages, are in the new scope. A redelivered message stays where it is.
func TestScopeChangesWhileATurnRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Chat: bottest.Halfway("slow", "It began when")}, Config: func(c *bot.Config) {
			bottest.WithRoot(c)
			c.Scope = sessions.ScopeMember
		}})
		w.Say("m1", "alice", "tell a slow story")
		bottest.After(time.Second)
		w.Say("m2", "root", "/scope group")
		bottest.After(time.Second)
		if got := w.Last().Reply.Text; !strings.Contains(got, "This group shares one context.") {
			t.Fatalf("the command was answered %q", got)
		}
		w.Say("m3", "alice", "second question")
		w.Say("m4", "bob", "hello")
		bottest.After(time.Second)
		w.Say("m5", "alice", "/stop")
		bottest.After(time.Second)
		w.Say("m6", "alice", "third question")
		bottest.After(time.Second)
		w.Say("m1", "alice", "tell a slow story")
		w.Say("m3", "alice", "second question")
		bottest.After(time.Second)

		member, root := sessions.NewKey("robot", "c1", "u-alice"), sessions.NewKey("robot", "c1", "u-root")
		wanted := []struct {
			key  sessions.Key
			text string
		}{
			{root, "This group shares one context."},
			{bottest.Group, "hello"},
			{member, "It began when\n\n⏹️ Stopped the answer"},
			{member, "second question"},
			{bottest.Group, "third question"},
		}
		sent := w.Wire.Sends()
		if len(sent) != len(wanted) {
			t.Fatalf("%d replies, want %d", len(sent), len(wanted))
		}
		for i, one := range wanted {
			if sent[i].Key != one.key || !strings.Contains(sent[i].Reply.Text, one.text) {
				t.Errorf("reply %d of session %s is %q, want one of %s with %q", i+1, sent[i].Key, sent[i].Reply.Text, one.key, one.text)
			}
		}
		bottest.Want(t, "redelivered", w.Figure("redelivered"), 2)
	})
}
