package yardstick

import (
	"context"
	_ "embed"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/memory"
	"ebb/memory/text"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/facts"
	"ebb/sql/index"
	"ebb/sql/pg"
)

// These statements are commands to the server rather than queries.
var (
	//go:embed load_history.sql
	loadHistory string
	//go:embed load_people.sql
	loadPeople string
)

// LoadedEvent is an event as [Loader.LoadEvents] stores it.
type LoadedEvent struct {
	Key sessions.Key
	sessions.Event
}

// Loader fills a database for measurements, thousands of rows a second. It skips the rules of turns, and keeps the
// constraints and the search terms.
type Loader struct {
	pool *pgxpool.Pool
	db   *pg.DB
	logs *index.Logs
}

// OpenLoader connects to a database whose schema is up to date.
func OpenLoader(ctx context.Context, url string) (*Loader, error) {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("connecting to the database: %w", err)
	}
	db, err := pg.Open(ctx, pg.Options{URL: url})
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("connecting to the database: %w", err)
	}
	return &Loader{pool: pool, db: db, logs: index.NewLogs(db)}, nil
}

// Close closes all connections.
func (l *Loader) Close() {
	l.pool.Close()
	l.db.Close()
}

// LoadSessions stores sessions with the places of their newest events.
func (l *Loader) LoadSessions(ctx context.Context, all []sessions.Session) error {
	columns := []string{"session_key", "robot_code", "conversation_id", "conversation_type", "last_seq"}
	_, err := l.pool.CopyFrom(ctx, pgx.Identifier{"dingtalk_sessions"}, columns, pgx.CopyFromSlice(len(all), func(i int) ([]any, error) {
		x := &all[i]
		return []any{x.Key, x.RobotCode, x.ConversationID, string(x.ConversationType), x.LastSeq}, nil
	}))
	if err != nil {
		return fmt.Errorf("loading %d sessions: %w", len(all), err)
	}
	return nil
}

// LoadEvents stores messages of people and the bot with the given times and places, and indexes them.
func (l *Loader) LoadEvents(ctx context.Context, all iter.Seq[LoadedEvent]) error {
	keys := map[sessions.Key]bool{}
	next, stop := iter.Pull(all)
	defer stop()
	columns := []string{
		"session_key", "seq", "role", "content", "sender_id", "sender_nick", "msg_id", "tokens", "created_at",
	}
	_, err := l.pool.CopyFrom(ctx, pgx.Identifier{"dingtalk_session_events"}, columns, pgx.CopyFromFunc(func() ([]any, error) {
		e, ok := next()
		if !ok {
			return nil, nil //nolint:nilnil // that is how the rows end
		}
		keys[e.Key] = true
		var msgID *string
		if e.Role == sessions.RoleUser {
			id := fmt.Sprint("loaded-", e.Seq)
			msgID = &id
		}
		return []any{
			e.Key, e.Seq, string(e.Role), pg.Clean(e.Content), pg.Clean(string(e.SenderID)), pg.Clean(e.SenderNick), msgID,
			pg.Clamp(e.Tokens), e.CreatedAt,
		}, nil
	}))
	if err != nil {
		return fmt.Errorf("loading events: %w", err)
	}
	for key := range keys {
		for n := 1; n > 0; {
			if n, err = l.logs.IndexSession(ctx, key, indexStep); err != nil {
				return fmt.Errorf("loading events of %s: %w", key, err)
			}
		}
	}
	return NotePeople(ctx, l.pool)
}

const indexStep = 2000 // places

// NotePeople adds the people of logs that no turn committed.
func NotePeople(ctx context.Context, db dbsqlc.DBTX) error {
	if _, err := db.Exec(ctx, loadPeople); err != nil {
		return fmt.Errorf("noting people: %w", err)
	}
	return nil
}

// FactText is equal for contents with the same words. A scope holds one of them.
func FactText(content string) string { return text.Normalize(pg.Clean(content)) }

// LoadMemories stores memories under their own ids, which must stay reserved.
func (l *Loader) LoadMemories(ctx context.Context, all []memory.Memory) error {
	columns := []string{
		"scope", "scope_id", "id", "kind", "content", "norm_hash", "subject_id", "said_by", "source_session", "source_group",
		"start_seq", "end_seq", "created_at", "terms", "terms_version",
	}
	_, err := l.pool.CopyFrom(ctx, pgx.Identifier{"memories"}, columns, pgx.CopyFromSlice(len(all), func(i int) ([]any, error) {
		m := &all[i]
		d := memory.Draft{Scope: m.Scope, ScopeID: m.ScopeID, Content: pg.Clean(m.Content)}
		return []any{
			string(m.Scope), m.ScopeID, m.ID, string(m.Kind), d.Content, facts.Hash(d, pg.RobotOf(m.SourceSession)),
			pg.Clean(string(m.SubjectID)), pg.Clean(string(m.SaidBy)), m.SourceSession, m.SourceGroup, m.StartSeq, m.EndSeq, m.CreatedAt,
			index.MemoryTerms(m.Scope, m.ScopeID, d.Content), index.TermsVersion,
		}, nil
	}))
	if err != nil {
		return fmt.Errorf("loading %d memories: %w", len(all), err)
	}
	return nil
}

// LoadHistory stores compactions of all loaded sessions, one for each step of events.
func (l *Loader) LoadHistory(ctx context.Context, step int) error {
	if _, err := l.pool.Exec(ctx, loadHistory, step); err != nil {
		return fmt.Errorf("loading compactions: %w", err)
	}
	return nil
}

// LoadEnd makes the server analyze the loaded rows and write them to disk.
func (l *Loader) LoadEnd(ctx context.Context) error {
	for _, order := range []string{yardstickVacuum, yardstickCheckpoint} {
		if _, err := l.pool.Exec(ctx, order); err != nil {
			return fmt.Errorf("settling what was loaded: %w", err)
		}
	}
	return nil
}
