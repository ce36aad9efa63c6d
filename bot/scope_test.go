package bot

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/sessions"
)

// A message follows those of its sender that wait when the scope changes: they are answered first, and a stop finds their
// turn. Other members, and later messages, are in the new scope. A redelivered message stays where it is.
func TestScopeChangesWhileATurnRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{model: &script{chat: halfway("slow", "It began when")}, config: func(c *Config) {
			rooted(c)
			c.Scope = sessions.ScopeMember
		}})
		w.say("m1", "alice", "tell a slow story")
		after(time.Second)
		w.say("m2", "root", "/scope group")
		after(time.Second)
		if got := w.last().Reply.Text; !strings.Contains(got, "This group shares one context.") {
			t.Fatalf("the command was answered %q", got)
		}
		w.say("m3", "alice", "second question")
		w.say("m4", "bob", "hello")
		after(time.Second)
		w.say("m5", "alice", "/stop")
		after(time.Second)
		w.say("m6", "alice", "third question")
		after(time.Second)
		w.say("m1", "alice", "tell a slow story")
		w.say("m3", "alice", "second question")
		after(time.Second)

		member, root := sessions.NewKey("robot", "c1", "u-alice"), sessions.NewKey("robot", "c1", "u-root")
		wanted := []struct {
			key  sessions.Key
			text string
		}{
			{root, "This group shares one context."},
			{group, "hello"},
			{member, "It began when\n\n⏹️ Stopped the answer"},
			{member, "second question"},
			{group, "third question"},
		}
		sent := w.wire.sends()
		if len(sent) != len(wanted) {
			t.Fatalf("%d replies, want %d", len(sent), len(wanted))
		}
		for i, one := range wanted {
			if sent[i].Key != one.key || !strings.Contains(sent[i].Reply.Text, one.text) {
				t.Errorf("reply %d of session %s is %q, want one of %s with %q", i+1, sent[i].Key, sent[i].Reply.Text, one.key, one.text)
			}
		}
		want(t, "redelivered", w.bot.restarts.redelivered.Load(), int64(2))
	})
}
