package pg

import (
	"testing"
	"time"
)

// The clock of a machine may be hours off: after a heartbeat the server's decides.
func TestClockIsTheServers(t *testing.T) {
	t.Parallel()
	var c Clock
	if off := time.Until(c.Now()).Abs(); off > time.Minute {
		t.Errorf("before a heartbeat the time is %v off the local one", off)
	}
	sent := time.Now()
	c.Set(sent.Add(3*time.Hour), sent)
	if off := (time.Until(c.Now()) - 3*time.Hour).Abs(); off > time.Minute {
		t.Errorf("after a heartbeat the time is %v off the server's", off)
	}
}
