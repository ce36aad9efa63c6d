package command

import (
	"testing"

	"ebb/sessions/sessionstest"
)

// For any message, its parsing as a command takes time in proportion to its length.
func TestGrowth(t *testing.T) {
	sessionstest.CheckGrowth(t, "commands", sessionstest.LongMessage, func(s string) {
		Commands.IsCommand("/" + s)
		Commands.Parse("/忘记" + s)
		Commands.IsCommand("/记忆 " + s)
	})
}
