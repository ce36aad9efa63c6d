package answer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/sendfile"
	"ebb/bot/turn/persist"
	"ebb/bot/wording"
	"ebb/sessions"
)

const (
	// maxFiles bounds the files of a reply: each costs two calls of the month.
	maxFiles = 4
	// callSource begins the source of a file that a call of a tool made.
	callSource = "call "
)

// fileKeeper keeps the files of a turn's reply.
type fileKeeper struct {
	store   Files
	timeout time.Duration // bounds one attempt to store
	sends   bool          // replies can have files
}

// recall returns the files of calls that earlier attempts at a turn made. These calls are not repeated.
func (k fileKeeper) recall(ctx context.Context, q question) ([]sessions.File, error) {
	runs := q.made.View.Runs
	if len(runs) == 0 {
		return nil, nil
	}
	events := make([]int64, len(runs))
	for i, r := range runs {
		events[i] = r.EventID
	}
	slices.Sort(events)
	kept, err := k.store.Kept(ctx, q.made.Lease.Key, slices.Compact(events))
	if err != nil {
		return nil, fmt.Errorf("read files of earlier calls: %w", err)
	}
	return slices.DeleteFunc(kept, func(f sessions.File) bool { return !strings.HasPrefix(f.Source, callSource) }), nil
}

// sentFiles are the files of a call on their way to the storage.
type sentFiles struct {
	call   string
	before int // files that the turn has already
	files  []sessions.File
}

// take implements ToolInput.Send.
func (s *sentFiles) take(name string, body []byte) error {
	if s.before+len(s.files) >= maxFiles {
		return errFiles
	}
	f, err := sendfile.Judge(name, body)
	if err != nil {
		return err
	}
	f.Source = fmt.Sprintf("%s%s %d", callSource, s.call, len(s.files))
	s.files = append(s.files, f)
	return nil
}

var errFiles = fmt.Errorf("a reply has at most %d files", maxFiles)

// keep stores the files of a call, before its result is recorded. A storage that refuses one costs that file.
func (k fileKeeper) keep(ctx context.Context, q *question, sent sentFiles) error {
	for _, f := range sent.files {
		kept, err := KeepFile(ctx, k.store, k.timeout, q.made.Lease, q.made.Asked[0].ID, f)
		if errors.Is(err, sessions.ErrRefused) {
			continue
		}
		if err != nil {
			return fmt.Errorf("store a file of %s: %w", sent.call, err)
		}
		q.files = append(q.files, kept)
	}
	return nil
}

// sendTables leaves the beginning of each long table in the reply, and sends the whole as a workbook. The log has the model's text.
func (k fileKeeper) sendTables(ctx context.Context, a Answer) Answer {
	if !k.sends || len(a.Waits) > 0 || !strings.Contains(a.Text, "|") {
		return a
	}
	lines := strings.Split(a.Text, "\n")
	var b strings.Builder
	from := 0
	for i, table := range sendfile.LongTables(lines) {
		if len(a.Files) == maxFiles {
			break
		}
		f, err := sendfile.Book(tableName(table.Title, i, a.For.Lang), []sendfile.Sheet{{Name: table.Title, Rows: table.Rows}})
		if err == nil {
			f.Source = fmt.Sprintf("table %d", i)
			f, err = KeepFile(ctx, k.store, k.timeout, a.For.Lease, a.For.Asked[0].ID, f)
		}
		if err != nil {
			zerolog.Ctx(ctx).Warn().Err(err).Msg("Table stays in the reply: it could not be made a file")
			continue
		}
		a.Files = append(a.Files, f)
		b.WriteString(strings.Join(lines[from:table.Shown+1], "\n"))
		b.WriteString(wording.Say(wording.FilePreview, a.For.Lang, len(table.Rows)-1, sendfile.PreviewRows, f.Name))
		from = table.Through + 1
	}
	a.Text = strings.TrimSpace(b.String() + strings.Join(lines[from:], "\n"))
	return a
}

func tableName(title string, n int, lang string) string {
	switch {
	case title != "" && n == 0:
		return title
	case title != "":
		return fmt.Sprintf("%s-%d", title, n+1)
	case lang == "en":
		return fmt.Sprintf("table-%d", n+1)
	}
	return fmt.Sprintf("表格-%d", n+1)
}

// KeepFile stores a file of the turn that begins with a message, and returns it without its bytes. It waits while the storage is unavailable.
// timeout bounds one attempt.
func KeepFile(ctx context.Context, store Files, timeout time.Duration, l sessions.Lease, event int64, f sessions.File) (sessions.File, error) {
	err := persist.Write(ctx, timeout, "File not stored, trying again", func(one context.Context) (err error) {
		f.ID, err = store.Keep(one, l, event, f)
		return err
	})
	f.Body = nil
	return f, err
}
