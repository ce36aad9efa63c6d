package bot

import (
	"reflect"
	"testing"
	"time"

	"ebb/bot/parts"
	"ebb/sessions"
)

// The message of a press has the person who pressed, and no right: an administrator may be none when its turn begins.
func TestPressHasNoRights(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 5, 10, 0, 0, 0, time.UTC)
	k := &clicks{shared: &parts.Shared{Now: func() time.Time { return now }}}
	question := sessions.Message{RobotCode: "robot", ConversationID: "cid", ConversationType: sessions.Group, Organization: "corp", Kind: "text"}
	want := question
	want.SenderID, want.StaffID, want.Text, want.SentAt = "boss", "boss", "/approve", now
	want.Press = &sessions.Press{Button: sessions.ButtonApprove, Turn: 7}
	got := k.press(sessions.Clicked{Card: sessions.Card{EventID: 7}, Message: question}, sessions.ButtonApprove, "boss")
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
