package answer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rs/zerolog"

	"ebb/bot/sendfile"
	"ebb/bot/turn/choice"
	"ebb/bot/wording"
	"ebb/sessions"
)

// sender returns ToolInput.Send of a call, whose files wait in the tray of the turn.
func sender(q *question, call string) func(name string, body []byte) error {
	n := 0
	return func(name string, body []byte) error {
		_, err := q.files.Add(sessions.File{Source: sendfile.CallSource(call, n), Name: name, Body: body})
		if err == nil {
			n++
		}
		return err
	}
}

// runsOf are the calls of earlier attempts whose files belong to this answer. The answer to another message of a broken attempt has its own.
func runsOf(made choice.Choice) []sessions.ToolRun {
	return slices.DeleteFunc(slices.Clone(made.View.Runs), func(r sessions.ToolRun) bool {
		return !slices.ContainsFunc(made.Asked, func(e sessions.Event) bool { return e.ID == r.EventID })
	})
}

// keepFiles stores the files of a call, before its result is recorded. A storage that refuses one costs that file.
func keepFiles(ctx context.Context, q *question) error {
	err := q.files.Store(ctx, q.made.Lease, q.made.Asked[0].ID)
	if errors.Is(err, sessions.ErrRefused) {
		return nil
	}
	return err
}

// sendTables leaves the beginning of each long table in the reply, and sends the whole as a workbook. The whole also stands in the reply of the
// workbook, for people whom that can't reach. A table that can't be a file stays in the text. The log has the model's text.
func sendTables(ctx context.Context, q question, a Answer) Answer {
	if len(a.Waits) > 0 || !strings.Contains(a.Text, "|") {
		return a
	}
	lines := strings.Split(a.Text, "\n")
	var b strings.Builder
	from := 0
	for i, table := range sendfile.LongTables(lines) {
		whole := strings.Join(lines[table.From:table.Through+1], "\n")
		f, err := sendTable(ctx, q, table, sessions.File{Source: fmt.Sprintf("table %d", i), Name: tableName(table.Title, i, a.For.Lang), Text: whole})
		if err != nil {
			zerolog.Ctx(ctx).Debug().Err(err).Msg("Long table stayed in the reply: it is no file")
			continue
		}
		b.WriteString(strings.Join(lines[from:table.Shown+1], "\n"))
		b.WriteString(wording.Say(wording.FilePreview, a.For.Lang, len(table.Rows)-1, sendfile.PreviewRows, f.Name))
		from = table.Through + 1
	}
	a.Text, a.Files = strings.TrimSpace(b.String()+strings.Join(lines[from:], "\n")), q.files.Files()
	return a
}

func sendTable(ctx context.Context, q question, table sendfile.Table, f sessions.File) (sessions.File, error) {
	if err := q.files.Room(); err != nil { // before the work of a workbook
		return f, err
	}
	body, err := sendfile.Book([]sendfile.Sheet{{Name: table.Title, Rows: table.Rows}})
	if err != nil {
		return f, err
	}
	f.Body = body
	return q.files.Send(ctx, q.made.Lease, q.made.Asked[0].ID, f)
}

func tableName(title string, n int, lang string) string {
	switch {
	case title != "" && n == 0:
	case title != "":
		title = fmt.Sprintf("%s-%d", title, n+1)
	case lang == "en":
		title = fmt.Sprintf("table-%d", n+1)
	default:
		title = fmt.Sprintf("表格-%d", n+1)
	}
	return title + ".xlsx"
}
