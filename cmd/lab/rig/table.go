package rig

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Figure is a line of the table.
type Figure struct {
	Name     string
	Measured string
	Ratio    string // to the reference value, or to its limit
	Target   string
	Reached  string
}

const reachedYes = "yes"

// AtMost says whether got is within its limit, or how far beyond.
func (f Figure) AtMost(got, limit float64) Figure {
	f.Reached = reachedYes
	if f.Ratio == "" && limit > 0 {
		f.Ratio = fmt.Sprintf("%.2f of the limit", got/limit)
	}
	if !(got <= limit) { // NaN too
		f.Reached = "not reached"
		if limit > 0 {
			f.Reached = fmt.Sprintf("not reached: %.2f x the limit", got/limit)
		}
	}
	return f
}

// AtLeast says whether got reaches its target, or its share of it.
func (f Figure) AtLeast(got, target float64) Figure {
	f.Reached = reachedYes
	if !(got >= target) {
		f.Reached = fmt.Sprintf("not reached: %.0f %% of the target", 100*got/target)
	}
	return f
}

// FormatFigures sets the figures in columns.
func FormatFigures(figures []Figure) string {
	rows := [][]string{{"what", "measured", "ratio / limit", "target", "reached"}}
	for _, f := range figures {
		rows = append(rows, []string{f.Name, f.Measured, f.Ratio, f.Target, f.Reached})
	}
	return FormatTable(rows)
}

// FormatTable sets rows in columns, with a rule below the first.
func FormatTable(rows [][]string) string {
	widths := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, cell := range r {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	line := func(r []string, fill string) {
		for i, cell := range r {
			if i > 0 {
				b.WriteString(" | ")
			}
			b.WriteString(cell)
			if pad := widths[i] - utf8.RuneCountInString(cell); i+1 < len(r) {
				b.WriteString(strings.Repeat(fill, pad))
			}
		}
		b.WriteByte('\n')
	}
	line(rows[0], " ")
	rule := make([]string, len(widths))
	for i, w := range widths {
		rule[i] = strings.Repeat("-", w)
	}
	line(rule, "-")
	for _, r := range rows[1:] {
		line(r, " ")
	}
	return b.String()
}

// Quantile is the smallest value that at least the share q of them does not exceed; 0 without values.
func Quantile[T time.Duration | float64](values []T, q float64) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(q * float64(len(sorted)))
	if float64(rank) < q*float64(len(sorted)) {
		rank++
	}
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Median is 0 without values.
func Median[T time.Duration | float64](values []T) T { return Quantile(values, 0.5) }

// Ratio is 0 for a zero divisor.
func Ratio(sum, by float64) float64 {
	if by == 0 {
		return 0
	}
	return sum / by
}

// FormatMillis has as many digits as matter.
func FormatMillis(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case ms < 10:
		return fmt.Sprintf("%.2f ms", ms)
	case ms < 100:
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%.0f ms", ms)
}
