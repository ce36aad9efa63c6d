package pg

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// Pipeline is a transaction of statements that are sent together, in one round trip and with one commit. It implements
// dbsqlc.DBTX for the batch functions: each queues its statements, and its results can be read after Send.
//
// A statement sees the rows of those before it. An error of one undoes all. A statement can't depend on a result in Go, so one
// that has to end the pipeline fails, for example by a division by zero.
type Pipeline struct {
	db    batchSender
	again bool // after a conflict
	all   []*queued
	err   error
}

type batchSender interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// queued is a statement with its result.
type queued struct {
	sql  string
	args []any

	tag    pgconn.CommandTag
	fields []pgconn.FieldDescription
	data   []byte // values of all rows, one after another
	ends   []int  // ends of the values in data; -1 for NULL
	rows   int
	err    error
}

var (
	errUnsent     = errors.New("the pipeline is not sent")
	errBatchAlone = errors.New("a pipeline takes the statements of batch functions only")
	errNotRun     = errors.New("an earlier statement of the pipeline failed")
)

// Pipeline returns a pipeline without statements. It serves one goroutine.
func (p *Pool) Pipeline() *Pipeline { return &Pipeline{db: p.Pool, again: true, err: errUnsent} }

// PipelineIn returns a pipeline in a transaction, which ends with an error of its statements.
func PipelineIn(tx pgx.Tx) *Pipeline { return &Pipeline{db: tx, err: errUnsent} }

// SendBatch implements dbsqlc.DBTX. It queues the statements.
func (p *Pipeline) SendBatch(_ context.Context, b *pgx.Batch) pgx.BatchResults {
	first := len(p.all)
	for _, q := range b.QueuedQueries {
		p.all = append(p.all, &queued{sql: q.SQL, args: q.Arguments, err: errUnsent})
	}
	return &pipelineResults{p: p, next: first, end: len(p.all)}
}

// Exec implements dbsqlc.DBTX. It fails.
func (p *Pipeline) Exec(context.Context, string, ...any) (pgconn.CommandTag, error) {
	return pgconn.CommandTag{}, errBatchAlone
}

// Query implements dbsqlc.DBTX. It fails.
func (p *Pipeline) Query(context.Context, string, ...any) (pgx.Rows, error) {
	return nil, errBatchAlone
}

// QueryRow implements dbsqlc.DBTX. It fails.
func (p *Pipeline) QueryRow(context.Context, string, ...any) pgx.Row {
	return scan(func([]any) error { return errBatchAlone })
}

// Send runs the statements and commits. It repeats all after a conflict with other transactions, as [Pool] does. After an error
// nothing was written, or only the answer of the commit was lost. The results of the statements before the failed one can be read
// then, too.
func (p *Pipeline) Send(ctx context.Context) error {
	for tries := 1; ; tries++ {
		if p.err = p.send(ctx); !p.again || !Clashed(ctx, p.err, tries) {
			p.err = withHint(p.err)
			return p.err
		}
	}
}

func (p *Pipeline) send(ctx context.Context) error {
	if len(p.all) == 0 {
		return nil
	}
	b := &pgx.Batch{QueuedQueries: make([]*pgx.QueuedQuery, 0, len(p.all))}
	for _, q := range p.all {
		b.Queue(q.sql, q.args...)
		*q = queued{sql: q.sql, args: q.args, err: errNotRun}
	}
	results := p.db.SendBatch(ctx, b)
	for _, q := range p.all {
		if q.err = q.read(results); q.err != nil {
			_ = results.Close() // the connection is free again
			return q.err
		}
	}
	return unwrapped(results.Close()) // the error of the commit
}

// unwrapped is the server's or the network's error without the name of the driver's step, which says nothing to a reader of the log.
func unwrapped(err error) error {
	if step, ok := errors.AsType[pgx.ErrPreprocessingBatch](err); ok {
		return step.Unwrap()
	}
	return err
}

// read copies the rows: their connection serves others after the commit.
func (q *queued) read(results pgx.BatchResults) error {
	rows, err := results.Query()
	if err != nil {
		return unwrapped(err)
	}
	defer rows.Close()
	for rows.Next() {
		if q.rows++; q.rows == 1 {
			q.fields = append(q.fields, rows.FieldDescriptions()...)
		}
		for _, v := range rows.RawValues() {
			if v == nil {
				q.ends = append(q.ends, -1)
				continue
			}
			q.data = append(q.data, v...)
			q.ends = append(q.ends, len(q.data))
		}
	}
	rows.Close()
	q.tag = rows.CommandTag()
	return unwrapped(rows.Err())
}

// pipelineResults are the results of the statements of one batch function.
type pipelineResults struct {
	p         *Pipeline
	next, end int
}

func (r *pipelineResults) take() *queued {
	if r.next >= r.end {
		return &queued{err: errors.New("no more results of the batch")}
	}
	r.next++
	return r.p.all[r.next-1]
}

// Exec implements pgx.BatchResults.
func (r *pipelineResults) Exec() (pgconn.CommandTag, error) {
	q := r.take()
	return q.tag, q.err
}

// Query implements pgx.BatchResults.
func (r *pipelineResults) Query() (pgx.Rows, error) {
	q := r.take()
	return &pipelineRows{all: q}, q.err
}

// QueryRow implements pgx.BatchResults.
func (r *pipelineResults) QueryRow() pgx.Row {
	q := r.take()
	return scan(func(dest []any) error {
		rows := &pipelineRows{all: q}
		if !rows.Next() {
			if q.err != nil {
				return q.err
			}
			return pgx.ErrNoRows
		}
		return rows.Scan(dest...)
	})
}

// Close implements pgx.BatchResults.
func (r *pipelineResults) Close() error { return r.p.err }

// Tx implements pgx.BatchResults.
func (r *pipelineResults) Tx() pgx.Tx { return nil }

// pipelineRows are the rows of one statement.
type pipelineRows struct {
	all  *queued
	next int // the row after the current one
	at   int // its place in the data
	raw  [][]byte
	err  error // the one of a scan
}

// A map of types serves one goroutine at a time, and remembers how each type is read.
var typeMaps = sync.Pool{New: func() any { return pgtype.NewMap() }}

// Next implements pgx.Rows.
func (r *pipelineRows) Next() bool {
	if r.all.err != nil || r.err != nil || r.next >= r.all.rows {
		r.raw = nil
		return false
	}
	width := len(r.all.fields)
	r.raw = r.raw[:0]
	for _, end := range r.all.ends[r.next*width : (r.next+1)*width] {
		var value []byte
		if end >= 0 {
			value = r.all.data[r.at:end:end]
			r.at = end
		}
		r.raw = append(r.raw, value)
	}
	r.next++
	return true
}

// Scan implements pgx.Rows.
func (r *pipelineRows) Scan(dest ...any) error {
	if len(dest) != len(r.raw) {
		r.err = fmt.Errorf("a row of %d values is read into %d", len(r.raw), len(dest))
		return r.err
	}
	m := typeMaps.Get().(*pgtype.Map)
	defer typeMaps.Put(m)
	for i, to := range dest {
		f := r.all.fields[i]
		if err := m.Scan(f.DataTypeOID, f.Format, r.raw[i], to); err != nil {
			r.err = fmt.Errorf("reading column %s: %w", f.Name, err)
			return r.err
		}
	}
	return nil
}

// Values implements pgx.Rows.
func (r *pipelineRows) Values() ([]any, error) {
	values := make([]any, len(r.raw))
	dest := make([]any, len(r.raw))
	for i := range values {
		dest[i] = &values[i]
	}
	return values, r.Scan(dest...)
}

// Err implements pgx.Rows.
func (r *pipelineRows) Err() error {
	if r.all.err != nil {
		return r.all.err
	}
	return r.err
}

// Close implements pgx.Rows.
func (r *pipelineRows) Close() {}

// CommandTag implements pgx.Rows.
func (r *pipelineRows) CommandTag() pgconn.CommandTag { return r.all.tag }

// FieldDescriptions implements pgx.Rows.
func (r *pipelineRows) FieldDescriptions() []pgconn.FieldDescription { return r.all.fields }

// RawValues implements pgx.Rows.
func (r *pipelineRows) RawValues() [][]byte { return r.raw }

// Conn implements pgx.Rows.
func (r *pipelineRows) Conn() *pgx.Conn { return nil }

// TypeMap implements pgx.Rows.
func (r *pipelineRows) TypeMap() *pgtype.Map { return nil }

// One returns the result of the only statement of a :batchone function, as pgx.ErrNoRows without one or without its row.
func One[T any](each func(func(int, T, error))) (T, error) {
	var row T
	err := error(pgx.ErrNoRows)
	each(func(_ int, one T, its error) { row, err = one, its })
	return row, err
}

// Found returns the rows of the statements of a :batchone function, without those that found none.
func Found[T any](each func(func(int, T, error))) (rows []T, err error) {
	each(func(_ int, one T, its error) {
		if its == nil {
			rows = append(rows, one)
		} else if err == nil && !errors.Is(its, pgx.ErrNoRows) {
			err = its
		}
	})
	return rows, err
}

// All returns the rows of all statements of a :batchmany function.
func All[T any](each func(func(int, []T, error))) (rows []T, err error) {
	each(func(_ int, some []T, its error) {
		if rows = append(rows, some...); err == nil {
			err = its
		}
	})
	return rows, err
}

// Done returns the first error of the statements of a :batchexec function.
func Done(each func(func(int, error))) (err error) {
	each(func(_ int, its error) {
		if err == nil {
			err = its
		}
	})
	return err
}
