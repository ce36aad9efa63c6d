package inspect

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/sessions"
	"ebb/sql/convert"
	"ebb/sql/dbsqlc"
)

// Inspector is for test databases only.
type Inspector struct {
	pool *pgxpool.Pool
	q    *dbsqlc.Queries
}

// Logged is an event of a person or of the bot.
type Logged struct {
	Key     sessions.Key
	ID      int64
	Seq     int64 // 0: it has no place in the view
	Role    sessions.Role
	State   sessions.State
	MsgID   sessions.MessageID
	Content string
}

// Standing is the progress of a session.
type Standing struct {
	Key                               sessions.Key
	FlushedSeq, CompactedSeq, LastSeq int64
	Compactions, Flushes              int
}

// Undone counts open work, schedules due within 20 seconds, and given-up replies.
type Undone struct{ Messages, Replies, Cards, Schedules, GivenUp int64 }

// Kept is a fact that is in force.
type Kept struct {
	Key     sessions.Key // session of the message
	Content string
}

// Letter is a reply of a turn.
type Letter struct {
	Key          sessions.Key
	ID           int64
	Nonce        string                  // track id of its card, if it has or had one
	Conversation sessions.ConversationID // destination
	Sent         bool                    // the gateways report that it arrived
	Refusals     int                     // by DingTalk
	Text         string
}

// TableSize is the size of one table.
type TableSize struct {
	Name       string
	Bytes      int64 // indexes included
	Live, Dead int64 // the server's estimates
}

var (
	//go:embed stall.sql
	inspectStall string
	//go:embed cut.sql
	inspectCut string
	//go:embed tables.sql
	inspectTables string
	//go:embed sizes.sql
	inspectSizes string
)

// Open connects at the first question, since the server may be away.
func Open(ctx context.Context, url string) (*Inspector, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("reading the database address: %w", err)
	}
	config.MaxConns = 4
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the database: %w", err)
	}
	return &Inspector{pool: pool, q: dbsqlc.New()}, nil
}

// Close closes the connections.
func (i *Inspector) Close() { i.pool.Close() }

// Log reads all messages and answers, session by session, in the order of the view. Those without a place come last.
func (i *Inspector) Log(ctx context.Context) ([]Logged, error) {
	rows, err := i.q.InspectLog(ctx, i.pool)
	if err != nil {
		return nil, fmt.Errorf("reading the whole log: %w", err)
	}
	out := make([]Logged, 0, len(rows))
	for _, r := range rows {
		out = append(out, Logged{
			Key: r.SessionKey, ID: r.ID, Seq: r.Seq, Role: r.Role, State: r.State, MsgID: sessions.MessageID(r.MsgID), Content: r.Content,
		})
	}
	return out, nil
}

// Sessions reads the progress of each session.
func (i *Inspector) Sessions(ctx context.Context) ([]Standing, error) {
	rows, err := i.q.InspectSessions(ctx, i.pool)
	if err != nil {
		return nil, fmt.Errorf("reading all sessions: %w", err)
	}
	out := make([]Standing, 0, len(rows))
	for _, r := range rows {
		out = append(out, Standing{
			Key: r.SessionKey, FlushedSeq: r.FlushedSeq, CompactedSeq: r.CompactedSeq, LastSeq: r.LastSeq,
			Compactions: r.CompactionCount, Flushes: r.FlushCount,
		})
	}
	return out, nil
}

// Terms reads the lease of each session.
func (i *Inspector) Terms(ctx context.Context) ([]sessions.Lease, error) {
	rows, err := i.q.InspectTerms(ctx, i.pool)
	if err != nil {
		return nil, fmt.Errorf("reading all leases: %w", err)
	}
	out := make([]sessions.Lease, 0, len(rows))
	for _, r := range rows {
		out = append(out, sessions.Lease{Key: r.SessionKey, Owner: sessions.ReplicaID(r.Owner), Term: r.LeaseTerm})
	}
	return out, nil
}

// Undone counts open work.
func (i *Inspector) Undone(ctx context.Context) (Undone, error) {
	r, err := i.q.InspectOpen(ctx, i.pool, sessions.ErasedText)
	if err != nil {
		return Undone{}, fmt.Errorf("counting open work: %w", err)
	}
	return Undone{Messages: r.Messages, Replies: r.Replies, Cards: r.Cards, Schedules: r.Schedules, GivenUp: r.GivenUp}, nil
}

// Gaps reports gaps between a session's summaries, from its beginning to its cursor.
func (i *Inspector) Gaps(ctx context.Context) ([]string, error) {
	rows, err := i.q.InspectGaps(ctx, i.pool)
	if err != nil {
		return nil, fmt.Errorf("looking for gaps between summaries: %w", err)
	}
	out := make([]string, 0, len(rows))
	for _, r := range rows {
		out = append(out, fmt.Sprintf("session %s: %s", r.SessionKey, r.What))
	}
	return out, nil
}

// Facts leaves out digests.
func (i *Inspector) Facts(ctx context.Context) ([]Kept, error) {
	rows, err := i.q.InspectFacts(ctx, i.pool)
	if err != nil {
		return nil, fmt.Errorf("reading all memories: %w", err)
	}
	out := make([]Kept, 0, len(rows))
	for _, r := range rows {
		out = append(out, Kept{Key: r.SessionKey, Content: r.Content})
	}
	return out, nil
}

// Replies reads all replies by session, in their order.
func (i *Inspector) Replies(ctx context.Context) ([]Letter, error) {
	rows, err := i.q.InspectReplies(ctx, i.pool)
	if err != nil {
		return nil, fmt.Errorf("reading all replies: %w", err)
	}
	out := make([]Letter, 0, len(rows))
	for _, r := range rows {
		out = append(out, Letter{
			Key: r.SessionKey, ID: r.ID, Nonce: r.Nonce, Conversation: sessions.ConversationID(r.ConversationID), Sent: r.State == "sent",
			Refusals: r.Refusals, Text: r.Body,
		})
	}
	return out, nil
}

// Approvals reads all calls that needed an approval, by session, in their order.
func (i *Inspector) Approvals(ctx context.Context) ([]sessions.Approval, error) {
	rows, err := i.q.InspectApprovals(ctx, i.pool)
	if err != nil {
		return nil, fmt.Errorf("reading all approvals: %w", err)
	}
	out := make([]sessions.Approval, len(rows))
	for n := range rows {
		out[n] = convert.Approval(&rows[n])
	}
	return out, nil
}

// Restarts reads the accounts of all processes, the newest first.
func (i *Inspector) Restarts(ctx context.Context) ([]sessions.Restart, error) {
	rows, err := i.q.RestartsList(ctx, i.pool, math.MaxInt32)
	if err != nil {
		return nil, fmt.Errorf("reading the accounts of all processes: %w", err)
	}
	return convert.Restarts(rows), nil
}

// Sizes lists tables, the largest first.
func (i *Inspector) Sizes(ctx context.Context) ([]TableSize, error) {
	rows, err := i.pool.Query(ctx, inspectSizes)
	if err != nil {
		return nil, fmt.Errorf("reading the sizes of the tables: %w", err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[TableSize])
	if err != nil {
		return nil, fmt.Errorf("reading the sizes of the tables: %w", err)
	}
	return out, nil
}

// Words finds the matches of a pattern in the whole database: by match, the tables that have it.
func (i *Inspector) Words(ctx context.Context, pattern string) (map[string][]string, error) {
	rows, err := i.pool.Query(ctx, inspectTables)
	if err != nil {
		return nil, fmt.Errorf("listing the tables: %w", err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("listing the tables: %w", err)
	}
	found := map[string][]string{}
	for _, table := range tables { // quoted by the server
		rows, err := i.pool.Query(ctx, "SELECT DISTINCT m[1] FROM "+table+" t, regexp_matches(t::text, $1, 'g') m", pattern)
		if err != nil {
			return nil, fmt.Errorf("searching table %s: %w", table, err)
		}
		words, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return nil, fmt.Errorf("searching table %s: %w", table, err)
		}
		for _, word := range words {
			found[word] = append(found[word], table)
		}
	}
	return found, nil
}

// Cut ends all other connections to the database, as a failover does, and counts them.
func (i *Inspector) Cut(ctx context.Context) (int64, error) {
	var n int64
	if err := i.pool.QueryRow(ctx, inspectCut).Scan(&n); err != nil {
		return 0, fmt.Errorf("cutting all connections: %w", err)
	}
	return n, nil
}

// Stall blocks all statements on sessions, their log and replies for a while. It repeats a lock that deadlocks.
func (i *Inspector) Stall(ctx context.Context, d time.Duration) error {
	for {
		err := i.stall(ctx, d)
		if dead, ok := errors.AsType[*pgconn.PgError](err); !ok || dead.Code != "40P01" || ctx.Err() != nil {
			return err
		}
	}
}

func (i *Inspector) stall(ctx context.Context, d time.Duration) error {
	err := pgx.BeginFunc(ctx, i.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, inspectStall); err != nil {
			return err
		}
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("stalling the tables: %w", err)
	}
	return nil
}
