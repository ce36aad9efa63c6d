package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"ebb/sql"
)

// listFlags are the common flags of list commands.
type listFlags struct {
	configFlag
	JSON  bool `help:"One JSON object a line."`
	Limit int  `default:"50" help:"Maximum number of rows (default: ${default})."`
}

// columns are the head of a table and the text of a row.
type columns[V any] func(clock) (head string, row func(V) string)

// listRows prints the rows that read returns, in the form of view.
func listRows[T, V any](
	ctx context.Context, app *App, f listFlags, read func(*sql.Store, context.Context, int) ([]T, error), view func(T) V, show columns[V],
) error {
	return withStore(ctx, app, f.configFlag, func(s *sql.Store, at clock) error {
		all, err := read(s, ctx, f.Limit)
		if err != nil {
			return err
		}
		head, row := show(at)
		return table(app.Stdout, f.JSON, views(all, view), head, row)
	})
}

// table prints rows as a table with an optional head, or as one JSON object a line.
func table[T any](out io.Writer, asJSON bool, rows []T, head string, row func(T) string) error {
	if asJSON {
		enc := json.NewEncoder(out)
		for _, r := range rows {
			if err := enc.Encode(r); err != nil {
				return fmt.Errorf("write JSON: %w", err)
			}
		}
		return nil
	}
	return write(out, func(w io.Writer) {
		if head != "" {
			fmt.Fprintln(w, head)
		}
		for _, r := range rows {
			fmt.Fprintln(w, row(r))
		}
	})
}

// views converts all rows to their --json form.
func views[T, V any](all []T, view func(T) V) []V {
	out := make([]V, len(all))
	for i, x := range all {
		out[i] = view(x)
	}
	return out
}

// writeRows prints two columns: names and values.
func writeRows(out io.Writer, rows [][2]string) error {
	return write(out, func(w io.Writer) {
		for _, r := range rows {
			fmt.Fprintf(w, "%s\t%s\n", r[0], r[1])
		}
	})
}

func write(out io.Writer, f func(io.Writer)) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	f(w)
	return w.Flush()
}

// clock formats times in agent.timezone, like the bot in chats.
type clock struct{ zone *time.Location }

// head returns the head of a column of times, with their zone.
func (c clock) head(name string) string { return fmt.Sprintf("%s (%s)", name, c.zone) }

// cell formats a time for such a column.
func (c clock) cell(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.In(c.zone).Format("2006-01-02 15:04:05")
}

// full formats a single time with its zone.
func (c clock) full(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return c.cell(t) + " " + c.zone.String()
}

// ending returns the end of an error for a table, because the cause stands last.
func ending(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if rs := []rune(s); len(rs) > 120 {
		s = "…" + string(rs[len(rs)-120:])
	}
	return s
}

// excerpt returns the beginning of a text for a table.
func excerpt(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if rs := []rune(s); len(rs) > 80 {
		s = string(rs[:80]) + "…"
	}
	return s
}
