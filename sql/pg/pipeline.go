package pg

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	pool  *Pool // nil in a transaction
	again bool  // after a conflict
	all   []queued
	err   error

	data []byte // values of all rows of all statements, one after another
	ends []int  // ends of the values in data; their complement for NULL
}

type batchSender interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// queued is a statement with its result.
type queued struct {
	sql  string
	args []any

	tag    pgconn.CommandTag
	fields []pgconn.FieldDescription // shared: see fieldsOf
	first  int                       // its first value in the pipeline's ends
	rows   int
	err    error
}

var (
	errUnsent     = errors.New("the pipeline is not sent")
	errBatchAlone = errors.New("a pipeline takes the statements of batch functions only")
	errScanned    = errors.New("the rows of a pipeline are scanned")
	errNotRun     = errors.New("an earlier statement of the pipeline failed")
)

// Pipeline returns a pipeline without statements. It serves one goroutine.
func (p *Pool) Pipeline() *Pipeline {
	q := used.Get().(*Pipeline)
	q.db, q.pool, q.again, q.err = p.Pool, p, true, errUnsent
	return q
}

// used are closed pipelines, for their room.
var used = sync.Pool{New: func() any { return &Pipeline{} }}

// maxKeptBytes bounds the room that a closed pipeline keeps.
const maxKeptBytes = 64 << 10

// Close leaves the pipeline's room to others: its results can't be read any more. A pipeline that is not closed is ordinary garbage.
func (p *Pipeline) Close() {
	if cap(p.data) > maxKeptBytes {
		return
	}
	clear(p.all)
	*p = Pipeline{all: p.all[:0], data: p.data[:0], ends: p.ends[:0]}
	used.Put(p)
}

// PipelineIn returns a pipeline in a transaction, which ends with an error of its statements.
func PipelineIn(tx pgx.Tx) *Pipeline { return &Pipeline{db: tx, err: errUnsent} }

// SendBatch implements dbsqlc.DBTX. It queues the statements.
func (p *Pipeline) SendBatch(_ context.Context, b *pgx.Batch) pgx.BatchResults {
	first := len(p.all)
	for _, q := range b.QueuedQueries {
		p.all = append(p.all, queued{sql: q.SQL, args: q.Arguments, err: errUnsent})
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
	if p.pool != nil {
		one, end := p.pool.withTimeout(ctx)
		defer end()
		ctx = one
	}
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
	p.data, p.ends = p.data[:0], p.ends[:0]
	b, queries := &pgx.Batch{QueuedQueries: make([]*pgx.QueuedQuery, len(p.all))}, make([]pgx.QueuedQuery, len(p.all))
	for i := range p.all {
		q := &p.all[i]
		queries[i] = pgx.QueuedQuery{SQL: q.sql, Arguments: q.args}
		b.QueuedQueries[i] = &queries[i]
		*q = queued{sql: q.sql, args: q.args, err: errNotRun}
	}
	if p.pool != nil && p.pool.blocks {
		return p.sendBlock(ctx, b)
	}
	return p.readAll(p.db.SendBatch(ctx, b), nil)
}

// sendBlock puts the statements between BEGIN and COMMIT, in the same round trip. A cluster takes a statement outside of a block for a
// transaction of its own, which the node of its rows commits at once.
func (p *Pipeline) sendBlock(ctx context.Context, b *pgx.Batch) error {
	conn, err := p.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	b.QueuedQueries = slices.Concat([]*pgx.QueuedQuery{{SQL: "BEGIN"}}, b.QueuedQueries, []*pgx.QueuedQuery{{SQL: "COMMIT"}})
	results := conn.SendBatch(ctx, b)
	if _, err = results.Exec(); err != nil {
		_ = results.Close()
		return unwrapStep(err)
	}
	err = p.readAll(results, func() error { _, err := results.Exec(); return unwrapStep(err) })
	if conn.Conn().PgConn().TxStatus() != 'I' && !conn.Conn().IsClosed() {
		_, _ = conn.Exec(context.WithoutCancel(ctx), "ROLLBACK") // a connection that does not answer is closed at its release
	}
	return err
}

// readAll reads the results of the statements, and of their end if there is one.
func (p *Pipeline) readAll(results pgx.BatchResults, end func() error) error {
	for i := range p.all {
		q := &p.all[i]
		if q.err = p.read(q, results); q.err != nil {
			_ = results.Close() // the connection is free again
			return q.err
		}
	}
	if end != nil {
		if err := end(); err != nil {
			_ = results.Close()
			return err
		}
	}
	return unwrapStep(results.Close()) // the error of the commit
}

// unwrapStep is the server's or the network's error without the name of the driver's step, which says nothing to a reader of the log.
func unwrapStep(err error) error {
	if step, ok := errors.AsType[pgx.ErrPreprocessingBatch](err); ok {
		return step.Unwrap()
	}
	return err
}

// read copies the rows: their connection serves others after the commit.
func (p *Pipeline) read(q *queued, results pgx.BatchResults) error {
	rows, err := results.Query()
	if err != nil {
		return unwrapStep(err)
	}
	defer rows.Close()
	q.first = len(p.ends)
	for rows.Next() {
		values := rows.RawValues()
		if q.rows++; q.rows == 1 {
			q.fields = fieldsOf(q.sql, rows)
			p.ends = slices.Grow(p.ends, len(values))
		}
		for _, v := range values {
			p.data = append(p.data, v...)
			end := len(p.data)
			if v == nil {
				end = ^end
			}
			p.ends = append(p.ends, end)
		}
	}
	rows.Close()
	q.tag = rows.CommandTag()
	return unwrapStep(rows.Err())
}

// columns has the columns of each statement, without their places in tables. The statements are constants, so it stays small.
var columns sync.Map // string -> []pgconn.FieldDescription

// fieldsOf returns the columns of a statement as they are now: an older release had others, perhaps.
func fieldsOf(sql string, rows pgx.Rows) []pgconn.FieldDescription {
	now := rows.FieldDescriptions()
	if known, ok := columns.Load(sql); ok {
		known := known.([]pgconn.FieldDescription)
		if slices.EqualFunc(known, now, func(a, b pgconn.FieldDescription) bool {
			return a.DataTypeOID == b.DataTypeOID && a.Format == b.Format && a.Name == b.Name
		}) {
			return known
		}
	}
	fresh := slices.Clone(now)
	columns.Store(sql, fresh)
	return fresh
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
	return &r.p.all[r.next-1]
}

// Exec implements pgx.BatchResults.
func (r *pipelineResults) Exec() (pgconn.CommandTag, error) {
	q := r.take()
	return q.tag, q.err
}

// Query implements pgx.BatchResults.
func (r *pipelineResults) Query() (pgx.Rows, error) {
	q := r.take()
	return r.rows(q), q.err
}

// QueryRow implements pgx.BatchResults.
func (r *pipelineResults) QueryRow() pgx.Row {
	q := r.take()
	return scan(func(dest []any) error {
		rows := r.rows(q)
		defer rows.Close()
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

func (r *pipelineResults) rows(q *queued) *pipelineRows {
	at := &pipelineRows{p: r.p, all: q, row: q.first - len(q.fields)}
	if q.first > 0 {
		at.start = r.p.end(q.first - 1)
	}
	at.next = at.start
	return at
}

// end is the end of a value, of a NULL too.
func (p *Pipeline) end(i int) int { return max(p.ends[i], ^p.ends[i]) }

// pipelineRows are the rows of one statement.
type pipelineRows struct {
	p     *Pipeline
	all   *queued
	count int // rows so far, with the current one
	row   int // the first value of the current row in the pipeline's ends
	start int // the current row in the pipeline's data
	next  int // its end
	types *pgtype.Map
	plans []pgtype.ScanPlan // they use types
	err   error             // the one of a scan
}

// A map of types serves one goroutine at a time, and remembers how each type is read.
var typeMaps = sync.Pool{New: func() any { return pgtype.NewMap() }}

// Next implements pgx.Rows.
func (r *pipelineRows) Next() bool {
	if r.all.err != nil || r.err != nil || r.count >= r.all.rows {
		r.Close()
		return false
	}
	r.count++
	r.row += len(r.all.fields)
	r.start = r.next
	if len(r.all.fields) > 0 {
		r.next = r.p.end(r.row + len(r.all.fields) - 1)
	}
	return true
}

// Scan implements pgx.Rows. As with pgx, all rows are read into values of the types of the first one.
func (r *pipelineRows) Scan(dest ...any) error {
	if r.count == 0 || len(dest) != len(r.all.fields) {
		r.err = fmt.Errorf("row %d of %d values is read into %d", r.count, len(r.all.fields), len(dest))
		return r.err
	}
	if r.types == nil {
		r.types, r.plans = typeMaps.Get().(*pgtype.Map), make([]pgtype.ScanPlan, len(dest))
		for i, to := range dest {
			r.plans[i] = r.types.PlanScan(r.all.fields[i].DataTypeOID, r.all.fields[i].Format, to)
		}
	}
	at := r.start
	for i, to := range dest {
		var value []byte
		if end := r.p.ends[r.row+i]; end >= 0 {
			value = r.p.data[at:end:end]
			if value == nil { // an empty value in a pipeline without bytes is no NULL
				value = []byte{}
			}
			at = end
		}
		if err := r.plans[i].Scan(value, to); err != nil {
			r.err = fmt.Errorf("reading column %s: %w", r.all.fields[i].Name, err)
			return r.err
		}
	}
	return nil
}

// Values implements pgx.Rows. It fails: the batch functions scan.
func (r *pipelineRows) Values() ([]any, error) { return nil, errScanned }

// Err implements pgx.Rows.
func (r *pipelineRows) Err() error {
	if r.all.err != nil {
		return r.all.err
	}
	return r.err
}

// Close implements pgx.Rows.
func (r *pipelineRows) Close() {
	if r.types != nil {
		typeMaps.Put(r.types)
		r.types, r.plans = nil, nil
	}
}

// CommandTag implements pgx.Rows.
func (r *pipelineRows) CommandTag() pgconn.CommandTag { return r.all.tag }

// FieldDescriptions implements pgx.Rows.
func (r *pipelineRows) FieldDescriptions() []pgconn.FieldDescription { return r.all.fields }

// RawValues implements pgx.Rows. There are none: the batch functions scan.
func (r *pipelineRows) RawValues() [][]byte { return nil }

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
		if rows == nil {
			rows = some
		} else {
			rows = append(rows, some...)
		}
		if err == nil {
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
