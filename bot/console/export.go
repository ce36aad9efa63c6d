package console

import (
	"encoding/csv"
	"fmt"
	"iter"
	"net/http"
	"regexp"
	"time"
)

// Bounds of answers: an export has many rows, and reads them in pages while its reader takes them.
const (
	maxExports = 2
	exportTime = 15 * time.Minute
	answerTime = time.Minute
)

// exports bounds those that run, as a semaphore.
type exports chan struct{}

// begin bounds the time that the reader of an export may take. The caller calls done at the end.
func (e exports) begin(w http.ResponseWriter) (done func(), err error) {
	select {
	case e <- struct{}{}:
	default:
		return nil, errExports
	}
	within(w, exportTime)
	return func() { <-e }, nil
}

// within ends the connection of a reader that does not take the answer in time.
func within(w http.ResponseWriter, d time.Duration) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(d)) // some writers of tests have none
}

const linesType = "application/x-ndjson"

// writeCSV ends the answer with a broken connection after an error behind the first row, as in [writeLines].
func (e exports) writeCSV(w http.ResponseWriter, r *request, name string, head []string, rows iter.Seq2[[]string, error]) error {
	done, err := e.begin(w)
	if err != nil {
		return err
	}
	defer done()
	out, begun := csv.NewWriter(w), false
	begin := func() {
		if begun {
			return
		}
		begun = true
		w.Header().Set("Content-Type", "text/csv; charset=utf-8")
		w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s"`, name))
		_ = out.Write(head) // an error stays for the next row
	}
	for row, err := range rows {
		if err != nil && !begun {
			return err
		}
		if err != nil {
			_, _ = apiError(r.Request, err)
			panic(http.ErrAbortHandler)
		}
		begin()
		if out.Write(row) != nil {
			return nil // the peer is gone
		}
	}
	begin()
	out.Flush()
	return nil
}

// formulaStarts are the runes after which a spreadsheet reads a formula. Full-width forms count as well, and so does what follows blanks,
// a line break within the cell, or a semicolon, which some languages take for the separator of columns.
var formulaStarts = regexp.MustCompile("(^|[;\\t\\r\\n])([\\s\\p{C}\"']*[=+\\-@＝＋－＠])")

// spreadsheetText keeps a text, and each part of it that a spreadsheet may take for a cell, from being read as a formula.
func spreadsheetText(text string) string { return formulaStarts.ReplaceAllString(text, "$1'$2") }
