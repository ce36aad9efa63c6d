package slot

import (
	"testing"

	"ebb/bot/chat"
	"ebb/bot/turn/choice"
	"ebb/sessions"
)

// allStop takes each message for a /stop by a person who may stop the turn.
type allStop struct{ choice.Commands }

func (allStop) Stops(_ sessions.Event, asked []sessions.Event) []sessions.Event { return asked }

// A button stops the turn of its card. A press that came too late does not stop the next turn.
func TestButtonStopsTheTurnOfItsCard(t *testing.T) {
	t.Parallel()
	first, next := []sessions.Event{{ID: 1}}, []sessions.Event{{ID: 2}}
	stops := func(e sessions.Event, asked []sessions.Event, before int64) bool {
		return len(Inbox{commands: allStop{}}.EndedBy(e, asked, before)) > 0
	}
	for name, m := range map[string]*sessions.Message{
		"press": {Press: &sessions.Press{Button: sessions.ButtonStop, Turn: first[0].ID}}, "row without a press": {Quiet: true},
	} {
		press := sessions.Event{ID: 3, MsgID: chat.StopID(first[0].ID, "u-root"), Message: m}
		if !stops(press, first, 2) || stops(press, next, 2) {
			t.Errorf("%s: the button stops another turn, or not its own", name)
		}
	}
	other := sessions.Event{ID: 3, Message: &sessions.Message{Press: &sessions.Press{Button: sessions.ButtonGood, Turn: first[0].ID}}}
	if stops(other, first, 2) {
		t.Error("another button stops the turn")
	}
	command := sessions.Event{ID: 3, MsgID: "m1", Message: &sessions.Message{}}
	if !stops(command, next, 2) || stops(command, next, 4) {
		t.Error("a /stop in words stops nothing, or a turn after its own")
	}
}
