package chaos

import (
	"fmt"
	"strings"
	"time"

	"ebb/cmd/lab/rig"
)

// crash is one kill of a gateway, or of all at once.
type crash struct {
	at  time.Time
	all bool
}

// recovery is the time from a crash to the last answer of the messages that waited for theirs at its moment.
type recovery struct {
	crash
	waited int
	took   time.Duration
}

func (w *world) noteCrash(all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.crashes = append(w.crashes, crash{time.Now(), all})
}

// recoveries leaves out commands, schedules, and messages without an answer: other checks cover these.
func (e *evidence) recoveries() []recovery {
	var all []recovery
	for _, c := range e.crashes {
		r := recovery{crash: c}
		for _, u := range e.said {
			if u.command || u.scheduled || u.wiped || u.pushed.IsZero() || u.pushed.After(c.at) || !u.answeredAt.After(c.at) {
				continue
			}
			r.waited++
			r.took = max(r.took, u.answeredAt.Sub(c.at))
		}
		all = append(all, r)
	}
	return all
}

// recoveryTable has one row for single kills and one for kills of all gateways. Other faults lie within the times.
func recoveryTable(all []recovery) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-28s %7s %8s %8s %8s %8s\n", "recovery after", "crashes", "waiting", "p50", "p90", "longest")
	for _, row := range []struct {
		name string
		all  bool
	}{{"the kill of one gateway", false}, {"the kill of all gateways", true}} {
		var took []time.Duration
		crashes, waited := 0, 0
		for _, r := range all {
			if r.all != row.all {
				continue
			}
			crashes++
			if waited += r.waited; r.waited > 0 {
				took = append(took, r.took)
			}
		}
		fmt.Fprintf(&b, "%-28s %7d %8d %8s %8s %8s\n", row.name, crashes, waited,
			rig.FormatMillis(rig.Quantile(took, 0.5)), rig.FormatMillis(rig.Quantile(took, 0.9)), rig.FormatMillis(rig.Quantile(took, 1)))
	}
	return b.String()
}
