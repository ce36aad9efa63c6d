package chaos

import (
	"strings"
	"testing"
	"time"
)

// Messages that waited at a crash count, and no others.
func TestRecoveries(t *testing.T) {
	at := time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC)
	in := func(s int) time.Time { return at.Add(time.Duration(s) * time.Second) }
	e := &evidence{
		crashes: []crash{{at, false}, {in(20), true}},
		said: map[string]remark{
			"waited":    {pushed: in(-2), answeredAt: in(3)},
			"longest":   {pushed: in(-1), answeredAt: in(7)},
			"before":    {pushed: in(-5), answeredAt: in(-1)},
			"after":     {pushed: in(1), answeredAt: in(9)},
			"command":   {pushed: in(-1), answeredAt: in(15), command: true},
			"erased":    {pushed: in(-1), answeredAt: in(15), wiped: true},
			"unsettled": {pushed: in(-1)},
		},
	}
	all := e.recoveries()
	if len(all) != 2 || all[0].waited != 2 || all[0].took != 7*time.Second || all[1].waited != 0 {
		t.Fatalf("recoveries: %+v", all)
	}
	table := recoveryTable(all)
	for _, want := range []string{"the kill of one gateway            1        2", "the kill of all gateways           1        0"} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is not in:\n%s", want, table)
		}
	}
}
