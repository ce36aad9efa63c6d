package chaos

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"ebb/cmd/lab/rig"
)

func (w *world) printReport(out io.Writer, f *findings) {
	fmt.Fprintf(out, "\ntroubles:")
	for _, kind := range slices.Sorted(maps.Keys(w.done)) {
		fmt.Fprintf(out, "  %s %d", kind, w.done[kind])
	}
	fmt.Fprintf(out, "\nlogged by gateways:\n")
	for _, m := range slices.Sorted(maps.Keys(w.book.counts)) {
		fmt.Fprintf(out, "%8d  %s\n", w.book.counts[m], m)
	}
	fmt.Fprintf(out, `
said %d, acknowledged %d, answered %d, commands %d, notified of a failed model %d, set aside %d
turns %d, compactions %d, flushes %d, facts flushed %d
processes with an account %d, terms of leases %d, resumed %d, redelivered %d, perhaps doubled %d, doubled %d
from the first push to the answer: p50 %s, p99 %s
%s
`, f.said, f.acked, f.answered, f.commands, f.apologies, f.dead, f.turns, f.compactions, f.flushes, f.facts,
		f.accounts, f.grants, f.resumed, f.redelivered, f.perhaps, f.doubled, rig.FormatMillis(f.p50), rig.FormatMillis(f.p99), w.took)
	fmt.Fprint(out, recoveryTable(f.recoveries))
	fmt.Fprintln(out, erasuresLine(w.erasures.copyAll()))
	fmt.Fprintf(out, "pictures and files: shown to the model %d, named as unreadable %d\n", f.shown, f.unread)
	fmt.Fprintf(out, "calls of tools: effects %d, results %d, failed with their server %d, outcome unknown %d\n", f.effects, f.results, f.failedCalls, f.unknownCalls)
	fmt.Fprintf(out, "approvals: messages that ended with a request %d, approved %d, rejected %d, expired %d\n", f.asked, f.approved, f.rejected, f.expired)
	fmt.Fprintf(out, "reminders set %d, delivered %d\n", f.reminders, f.reminded)
	if w.opt.Cards {
		fmt.Fprintln(out, cardsLine(f))
	}
	fmt.Fprintf(out, "months used up %d, answers by webhook meanwhile %d\n", len(w.months.copyAll()), f.meanwhile)
	for _, name := range slices.Sorted(maps.Keys(w.calmed)) {
		c := w.calmed[name]
		fmt.Fprintf(out, "%s when idle: RSS %.0f MB, %d goroutines, %d open files\n", name, c.resident/mega, c.goroutines, c.files)
	}
	if len(f.broken) == 0 {
		fmt.Fprintf(out, "seed %d: 0 violations\n", w.opt.Seed)
		return
	}
	for _, b := range f.broken {
		fmt.Fprintf(out, "VIOLATION: %s\n", b)
	}
	again := fmt.Sprintf("--seed %d --for %s --every %s --erase %s --remind %s --attach %s --tools %s --replicas %d --rate %g", w.opt.Seed, w.opt.For, w.opt.Every, w.opt.Erase, w.opt.Remind, w.opt.Attach, w.opt.Tools, w.opt.Replicas, w.opt.Rate)
	if !w.opt.Cards {
		again += " --no-cards"
	}
	if w.opt.Harm > 0 {
		again += fmt.Sprintf(" --harm %s", w.opt.Harm)
	}
	if w.opt.Calm {
		again += " --calm"
	}
	fmt.Fprintf(out, "seed %d: %d violations; the same plan again: lab chaos %s\n", w.opt.Seed, len(f.broken), again)
}

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
