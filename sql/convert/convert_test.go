package convert

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// The columns of an event have its text, its id and its sender, and the JSON has the rest: together they are the message.
func TestMessageIsStoredOnce(t *testing.T) {
	t.Parallel()
	full := sessions.Message{
		RobotCode: "robot", ConversationID: "cid", ConversationType: sessions.Group, ConversationTitle: "a group", ID: "the-id",
		SenderID: "the-sender", StaffID: "the-sender", EncryptedID: "$:x", External: true, SenderNick: "the-nick", Admin: true,
		Kind: "text", Text: "the-text", Quote: &sessions.Quote{ID: "q", SenderID: "other", Nick: "Other", Text: "quoted"},
		Attachments: []sessions.Attachment{{Kind: "file", Code: "c", Name: "n"}}, Mentioned: []sessions.UserID{"m"}, Press: &sessions.Press{Button: sessions.ButtonStop, Turn: 7}, Quiet: true, OverQuota: true,
		Organization: "corp", SentAt: time.Unix(1, 0).UTC(), Webhook: "https://w", WebhookExpires: time.Unix(2, 0).UTC(), Outcome: sessions.Limited, Next: 3,
		Scheduled: &sessions.Scheduled{},
	}
	outside := full
	outside.SenderID, outside.StaffID = "$:the-sender", ""
	resolved := full
	resolved.StaffID = "another-staff-id"
	for name, m := range map[string]sessions.Message{"of staff": full, "of an outsider": outside, "of another id": resolved} {
		body, err := MessageBody(m)
		if err != nil {
			t.Fatal(err)
		}
		for _, once := range []string{"the-id", "the-sender", "the-nick", "the-text"} {
			if strings.Contains(string(body), once) {
				t.Errorf("%s: the JSON repeats %s: %s", name, once, body)
			}
		}
		id := m.ID
		e, err := WholeEvent(&dbsqlc.Event{MsgID: &id, SenderID: m.SenderID, SenderNick: m.SenderNick, Content: m.Text, Message: body})
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(*e.Message, m) {
			t.Errorf("%s: %+v is read as %+v", name, m, *e.Message)
		}
	}
	v := reflect.ValueOf(full)
	for i := range v.NumField() {
		if f := v.Type().Field(i); v.Field(i).IsZero() && f.Tag.Get("json") != "-" {
			t.Errorf("the test's message has no %s", f.Name)
		}
	}
}
