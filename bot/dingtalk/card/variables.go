package card

import "ebb/sessions"

// deploy/dingtalk-card describes these variables of a template.
const (
	varStop     = "stop"     // "true": the button that stops the turn is shown
	varFeedback = "feedback" // "true": the buttons of a rating are shown
	varApproval = "approval" // "true": the buttons of an approval are shown
	varFlow     = "flowStatus"
	VarNotice   = "notice" // shown to the person who clicked
	yes, no     = "true", "false"
	flowDone    = "3"
	flowFailed  = "5"
)

// Hide returns the variables that hide the buttons of an action's kind.
func Hide(action string) map[string]string {
	switch sessions.Button(action) {
	case sessions.ButtonStop:
		return map[string]string{varStop: no}
	case sessions.ButtonApprove, sessions.ButtonReject:
		return map[string]string{varApproval: no}
	}
	return map[string]string{varFeedback: no}
}

// buttons are the variables of an ended card, and one more: those of an approval are shown in place of a rating's.
func buttons(g sessions.Target, key, value string) map[string]string {
	if g.Approve {
		return map[string]string{varStop: no, varFeedback: no, varApproval: yes, key: value}
	}
	return map[string]string{varStop: no, varFeedback: yes, key: value}
}
