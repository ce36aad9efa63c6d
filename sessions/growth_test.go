package sessions_test

import (
	"testing"

	"ebb/sessions"
	"ebb/sessions/redact"
	"ebb/sessions/sessionstest"
)

// Work on a message takes time in proportion to its length, for any content.
func TestGrowth(t *testing.T) {
	for name, f := range map[string]func(string){
		"HoldsSecret": func(s string) { redact.HasSecret(s) },
		"Redact":      func(s string) { redact.Secrets(s) },
		"Speaker":     func(s string) { sessions.Speaker(s, sessions.UserID(s)) },
		"QuoteLead":   func(s string) { _ = sessions.QuoteLead("张伟", s) },
		"BlobOf":      func(s string) { sessions.BlobOf(s) },
		"NewKey":      func(s string) { sessions.NewKey("r", sessions.ConversationID(s), "") },
	} {
		t.Run(name, func(t *testing.T) { sessionstest.CheckGrowth(t, name, sessionstest.LongMessage, f) })
	}
}
