package sessions_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"ebb/sessions"
)

// part draws what an id may be, with the marks that keys give a meaning.
var part = rapid.StringOf(rapid.OneOf(rapid.SampledFrom([]rune("/%2F$:+= aAＡ张")), rapid.Rune()))

// Law: keys of different parts never collide, and a key gives its robot and conversation back.
func TestKeysNeverCollide(t *testing.T) {
	t.Parallel()
	type parts struct {
		robot        sessions.RobotCode
		conversation sessions.ConversationID
		sender       sessions.UserID
	}
	draw := func(t *rapid.T, name string) parts {
		return parts{
			sessions.RobotCode(part.Draw(t, name+" robot")), sessions.ConversationID(part.Draw(t, name+" conversation")),
			sessions.UserID(part.Draw(t, name+" sender")),
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw(t, "a"), draw(t, "b")
		if rapid.Bool().Draw(t, "similar") { // the same letters, divided elsewhere
			b = a
			b.robot, b.conversation = a.robot+"/", sessions.ConversationID(strings.TrimPrefix(string(a.conversation), "/"))
		}
		x, y := sessions.NewKey(a.robot, a.conversation, a.sender), sessions.NewKey(b.robot, b.conversation, b.sender)
		if (x == y) != (a == b) {
			t.Fatalf("%+v and %+v have the keys %s and %s", a, b, x, y)
		}
		if robot, conversation := x.Conversation(); robot != a.robot || conversation != a.conversation {
			t.Fatalf("%s is of %q and %q, want %+v", x, robot, conversation, a)
		}
	})
}

// Law: all sessions of a conversation have one group, which is its own group; the key of deleted sessions names the robot alone.
func TestKeysOfAConversationHaveOneGroup(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		robot, conversation := sessions.RobotCode(part.Draw(t, "robot")), sessions.ConversationID(part.Draw(t, "conversation"))
		group := sessions.NewKey(robot, conversation, "")
		member := sessions.NewKey(robot, conversation, sessions.UserID(part.Draw(t, "member")))
		if member.Group() != group || group.Group() != group {
			t.Fatalf("the groups of %s and %s are %s and %s", member, group, member.Group(), group.Group())
		}
		gone := member.Gone()
		if r, c := gone.Conversation(); r != robot || c != "" || gone != group.Gone() || gone != gone.Gone() {
			t.Fatalf("the deleted sessions of %s are under %s", member, gone)
		}
	})
}

// A key that an older release wrote, or a person typed, is read without a failure.
func TestKeysOfOtherForms(t *testing.T) {
	t.Parallel()
	for key, want := range map[sessions.Key][2]string{
		"":            {"", ""},
		"robot":       {"robot", ""},
		"r/c/u/more":  {"r", "c"},
		"r%2Fx/c%20d": {"r/x", "c d"},
		"r%zz/%":      {"r%zz", "%"},
	} {
		if robot, conversation := key.Conversation(); string(robot) != want[0] || string(conversation) != want[1] {
			t.Errorf("%q is of %q and %q, want %q", key, robot, conversation, want)
		}
	}
}

func TestKeyInALogLine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := zerolog.New(&out)
	log.Info().EmbedObject(sessions.NewKey("r", "c", "u")).Send()
	if got := out.String(); !strings.Contains(got, `"session":"r/c/u"`) {
		t.Errorf("the line is %s", got)
	}
}

// A scope decides who shares a session, and nothing else of a message does.
func TestScopesChooseTheSession(t *testing.T) {
	t.Parallel()
	m := sessions.Message{RobotCode: "r", ConversationID: "c", SenderID: "u", ConversationType: sessions.Group, SenderNick: "n"}
	for scope, want := range map[sessions.Scope]sessions.Key{
		sessions.ScopeGroup: "r/c", sessions.ScopeMember: "r/c/u", "": "r/c",
	} {
		if got := scope.Key(m); got != want {
			t.Errorf("scope %q gives %s, want %s", scope, got, want)
		}
	}
}
