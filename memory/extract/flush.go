package extract

import (
	"context"
	_ "embed"
	"text/template"
)

//go:embed flush.md
var promptText string

var promptTemplate = template.Must(template.New("flush.md").Parse(promptText))

// Known memories are shown so that the model saves new facts only.
const knownShown = 30

// Flush extracts the facts of the events after the session's flush cursor, up to d.Through. Each part of the range
// commits on its own: after an error the cursor stands behind the last part that did.
//
// A part that the model refuses is halved down to one event. It is skipped once the model has read a later one, or
// else a harmless sentence: the model is then not at fault. If it read no event at all, only after
// [sessions.Session.FlushFailures] in a row. See [Outcome.Passed].
func (f *Flusher) Flush(ctx context.Context, d FlushRequest) (Outcome, error) {
	at := d.Session.FlushedSeq
	r := &flushRun{flusher: f, due: d, model: f.Name, limit: f.Context, end: at, out: Outcome{Nothing: true, Through: at, Refused: map[string]int{}}}
	err := r.readRange(ctx)
	r.out.Lost, r.out.LostCost, r.out.LostModel = r.paid, r.paidCost, r.paidBy
	return r.out, err
}
