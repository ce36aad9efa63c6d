package chaos

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"ebb/cmd/lab/rig"
	"ebb/sql/inspect"
)

func (w *world) figuresOf(ctx context.Context, c *rig.Process) (figures, error) {
	ctx, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	const resident, goroutines, files = "process_resident_memory_bytes", "go_goroutines", "process_open_fds"
	m, err := rig.ReadMetrics(ctx, w.book.adminOf(c.Name), resident, goroutines, files)
	if err != nil {
		return figures{}, fmt.Errorf("gateway %s: %w", c.Name, err)
	}
	return figures{resident: m[resident], goroutines: int(m[goroutines]), files: int(m[files]), turns: int(m["ebb_turns_total"])}, nil
}

// sampleEvery is a minute, and less in a short soak.
func sampleEvery(whole time.Duration) time.Duration {
	return max(time.Second, min(time.Minute, whole/30))
}

func (w *world) sampleUsage(ctx context.Context) {
	began := time.Now()
	for next := began; ; {
		next = next.Add(sampleEvery(w.opt.For))
		if !rig.WaitUntil(ctx, next) {
			return
		}
		s, err := w.takeSample(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			w.addBroken("a sample: %v", err)
			continue
		}
		s.at = time.Since(began)
		w.samples = append(w.samples, s)
		fmt.Fprintln(w.out, s)
	}
}

func (w *world) takeSample(ctx context.Context) (sample, error) {
	s := sample{gateways: map[string]figures{}, tables: map[string]inspect.TableSize{}}
	for _, g := range w.slots {
		f, err := w.figuresOf(ctx, g.child)
		if err != nil {
			return s, err
		}
		s.gateways[g.child.Name] = f
		s.turns += f.turns
	}
	tables, err := w.eye.Sizes(ctx)
	for _, t := range tables {
		s.tables[t.Name] = t
	}
	return s, err
}

const (
	mega        = 1 << 20
	shownTables = 4
)

// String is one line: the usage of each gateway, and the growth of the largest tables by thousand turns.
func (s sample) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%8s %7d turns", s.at.Round(time.Second), s.turns)
	names := slices.Sorted(maps.Keys(s.gateways))
	for _, column := range []struct {
		head string
		of   func(figures) int
	}{
		{"RSS MB", func(f figures) int { return int(f.resident / mega) }},
		{"goroutines", func(f figures) int { return f.goroutines }},
		{"files", func(f figures) int { return f.files }},
	} {
		fmt.Fprintf(&b, "  %s", column.head)
		for _, name := range names {
			fmt.Fprintf(&b, " %d", column.of(s.gateways[name]))
		}
	}
	tables := slices.SortedFunc(maps.Values(s.tables), func(x, y inspect.TableSize) int { return cmp.Compare(y.Bytes, x.Bytes) })
	per := max(float64(s.turns)/1000, 0.001)
	for _, t := range tables[:min(shownTables, len(tables))] {
		fmt.Fprintf(&b, "  %s %.2f MB, %.0f dead", t.Name, float64(t.Bytes)/mega/per, float64(t.Dead)/per)
	}
	b.WriteString(" (by 1,000 turns)")
	return b.String()
}

// Limits of flat usage. The first quarter is for warming up: caches, pools and the heap find their size. The second
// half of the rest is compared with its first half.
const (
	warmUp          = 4         // one of this number of parts
	flatRSS         = 1.10      // times, by the median,
	flatRSSRoom     = 8 * mega  // and so much: a heap breathes
	flatGoroutines  = 10        // more, by the median
	flatFiles       = 5         // more, by the median
	flatGrowth      = 1.25      // times the bytes that a table grows by thousand turns,
	flatGrowthRoom  = 256 << 10 // and so much: files grow by whole pages, and are cleaned up by the minute;
	flatGrowthLeast = mega      // by so much a table may grow in any case
	flatDead        = 0.15      // more of a table's rows are dead, at the worst moment;
	flatDeadShare   = 0.35      // less than this is how the server's own cleaning leaves a table,
	flatDeadRoom    = 5_000     // and so are fewer rows
	fewestSamples   = 2 * warmUp
)

// judgeUsage prints whether the usage is flat, and returns the breaches.
func (w *world) judgeUsage(out io.Writer) []string {
	lines, broken := judgeSoak(w.samples)
	fmt.Fprintf(out, "\nsecond half against first, after a quarter to warm up (flat: memory <= x %.2f + %d MB, goroutines <= + %d, files <= + %d,\n"+
		"a table's growth by 1,000 turns <= x %.2f + %d KB, its share of dead rows <= + %.0f %% or below %.0f %%)\n",
		flatRSS, flatRSSRoom/mega, flatGoroutines, flatFiles, flatGrowth, flatGrowthRoom>>10, 100*flatDead, 100*flatDeadShare)
	for _, l := range lines {
		fmt.Fprintln(out, l)
	}
	return broken
}

// judgeSoak compares the two halves of a soak: a line for each quantity, and the breaches.
func judgeSoak(samples []sample) (lines, broken []string) {
	if len(samples) < fewestSamples {
		return nil, []string{fmt.Sprintf("a soak of %d samples is too short", len(samples))}
	}
	samples = samples[len(samples)/warmUp:]
	first, second := samples[:len(samples)/2], samples[len(samples)/2:]
	note := func(flat bool, format string, args ...any) {
		line := fmt.Sprintf(format, args...)
		if !flat {
			broken = append(broken, "not flat: "+line)
		}
		lines = append(lines, line)
	}
	for _, name := range slices.Sorted(maps.Keys(samples[0].gateways)) {
		a, b := medianOf(first, name), medianOf(second, name)
		note(b.resident <= a.resident*flatRSS+flatRSSRoom, "%s: RSS %.0f MB, then %.0f MB", name, a.resident/mega, b.resident/mega)
		note(b.goroutines <= a.goroutines+flatGoroutines, "%s: goroutines %d, then %d", name, a.goroutines, b.goroutines)
		note(b.files <= a.files+flatFiles, "%s: open files %d, then %d", name, a.files, b.files)
	}
	for _, name := range slices.Sorted(maps.Keys(samples[0].tables)) {
		if second[len(second)-1].tables[name].Bytes < mega {
			continue // nothing to speak of
		}
		a, b := tableGrowth(first, name), tableGrowth(append(first[len(first)-1:len(first):len(first)], second...), name)
		room := max(flatGrowthRoom, flatGrowthLeast*1000/float64(max(1, second[len(second)-1].turns-second[0].turns)))
		note(b <= a*flatGrowth+room, "%s: grows %.0f KB, then %.0f KB by 1,000 turns", name, a/1024, b/1024)
		da, db := deadShare(first, name), deadShare(second, name)
		note(db <= max(da+flatDead, flatDeadShare), "%s: %.0f %% of its rows are dead, then %.0f %%", name, 100*da, 100*db)
	}
	return lines, broken
}

// medianOf takes the median of each figure by itself.
func medianOf(samples []sample, gateway string) figures {
	var resident, goroutines, files []float64
	for _, s := range samples {
		f := s.gateways[gateway]
		resident, goroutines, files = append(resident, f.resident), append(goroutines, float64(f.goroutines)), append(files, float64(f.files))
	}
	return figures{
		resident: rig.Quantile(resident, 0.5), goroutines: int(rig.Quantile(goroutines, 0.5)), files: int(rig.Quantile(files, 0.5)),
	}
}

// tableGrowth is in bytes by thousand turns.
func tableGrowth(samples []sample, table string) float64 {
	a, b := samples[0], samples[len(samples)-1]
	turns := float64(max(1, b.turns-a.turns))
	return float64(b.tables[table].Bytes-a.tables[table].Bytes) * 1000 / turns
}

// deadShare ignores moments with few dead rows.
func deadShare(samples []sample, table string) float64 {
	worst := 0.0
	for _, s := range samples {
		if t := s.tables[table]; t.Dead >= flatDeadRoom {
			worst = max(worst, float64(t.Dead)/float64(t.Live+t.Dead))
		}
	}
	return worst
}
