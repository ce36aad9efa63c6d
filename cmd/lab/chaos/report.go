package chaos

import (
	"fmt"
	"io"
	"maps"
	"slices"

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
	again := fmt.Sprintf("--seed %d --for %s --every %s --erase %s --remind %s --replicas %d --rate %g", w.opt.Seed, w.opt.For, w.opt.Every, w.opt.Erase, w.opt.Remind, w.opt.Replicas, w.opt.Rate)
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
