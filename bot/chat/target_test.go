package chat

import (
	"errors"
	"testing"
	"time"

	"ebb/sessions"
)

// said is an event with a group message.
func said(id int64, by sessions.UserID, webhook string, expires time.Time) sessions.Event {
	return sessions.Event{ID: id, Key: "k", SenderID: by, CreatedAt: time.Unix(id, 0), Message: &sessions.Message{
		RobotCode: "robot", ConversationID: "cid", ConversationType: sessions.Group, SenderID: by, SenderNick: "nick of " + string(by), StaffID: by,
		Webhook: webhook, WebhookExpires: expires,
	}}
}

// A reply goes to the conversation over the webhook that lives longest, and mentions each asker once.
func TestTargetMentionsEachAskerOnce(t *testing.T) {
	t.Parallel()
	early, late := time.Unix(1000, 0), time.Unix(2000, 0)
	g := TargetOf([]sessions.Event{said(1, "a", "w1", late), said(2, "b", "w2", early), said(3, "a", "", time.Time{})})
	if g.ConversationID != "cid" || g.Webhook != "w1" || !g.WebhookExpires.Equal(late) || g.Scheduled {
		t.Errorf("the target is %+v", g)
	}
	if len(g.Mentions) != 2 || g.Mentions[0].StaffID != "a" || g.Mentions[1].StaffID != "b" {
		t.Errorf("it mentions %+v", g.Mentions)
	}
	private := said(4, "a", "w", late)
	private.Message.ConversationType = sessions.Private
	if g := TargetOf([]sessions.Event{private}); len(g.Mentions) != 0 {
		t.Errorf("a private chat mentions %+v", g.Mentions)
	}
	if g := TargetOf(nil); g.ConversationID != "" || g.Scheduled {
		t.Errorf("the target of nothing is %+v", g)
	}
}

// Keys are the same for each attempt, and differ between an answer, its notice, another message, and a message that is tried again.
func TestReplyKeysAreOfTheirMessage(t *testing.T) {
	t.Parallel()
	e := said(1, "a", "", time.Time{})
	again, other := e, e
	again.CreatedAt, other.ID = again.CreatedAt.Add(time.Second), 2
	if ReplyKey("k", e) != ReplyKey("k", e) {
		t.Error("two attempts have two keys")
	}
	keys := map[string]bool{}
	for _, key := range []string{ReplyKey("k", e), NoticeKey("k", e), ReplyKey("k", again), ReplyKey("k", other), ReplyKey("other", e)} {
		if keys[key] || key[:len(KeyPrefix)] != KeyPrefix {
			t.Errorf("the key %s stands for two replies, or has no prefix", key)
		}
		keys[key] = true
	}
}

// A classified failure keeps its cause, for checks of the cause.
func TestSendErrorKeepsItsCause(t *testing.T) {
	t.Parallel()
	cause := errors.New("no route")
	var err error = &SendError{Silent: true, Err: cause}
	if !errors.Is(err, cause) || err.Error() != "no route" {
		t.Errorf("the error is %v", err)
	}
}

// A tool of another program names its server; the bot's own tools have none.
func TestServerOfATool(t *testing.T) {
	t.Parallel()
	for tool, want := range map[string]string{"files__read": "files", "my_files__read__all": "my_files", "memory_save": "", "": "", "__x": ""} {
		if got := ServerOf(tool); got != want {
			t.Errorf("%s: got %q, want %q", tool, got, want)
		}
	}
}
