package sql

import (
	"context"
	_ "embed"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/sessions"
)

// What is no query, but an order to the server.
var (
	//go:embed yardstick/load_index.sql
	loadIndex string
	//go:embed yardstick/load_drop.sql
	loadDrop string
)

// LoadedEvent is an event as [Store.LoadEvents] stores it.
type LoadedEvent struct {
	Key sessions.Key
	sessions.Event
}

// LoadSessions makes sessions, in order, with the places of their newest events. It, LoadEvents and LoadMemories fill a
// database that is made to be measured, thousands of rows a second rather than turn by turn. They hold to none of the rules
// of turns, and to all of those of the tables; what a search needs is stored as turns and saves store it.
func (s *Store) LoadSessions(ctx context.Context, all []sessions.Session) error {
	columns := []string{"session_key", "robot_code", "conversation_id", "conversation_type", "last_seq"}
	_, err := s.pool.CopyFrom(ctx, pgx.Identifier{"dingtalk_sessions"}, columns, pgx.CopyFromSlice(len(all), func(i int) ([]any, error) {
		x := &all[i]
		return []any{x.Key, x.RobotCode, x.ConversationID, string(x.ConversationType), x.LastSeq}, nil
	}))
	if err != nil {
		return fmt.Errorf("loading %d sessions: %w", len(all), err)
	}
	return nil
}

// LoadEvents stores what people and the bot said, with times and places as given. See [Store.LoadSessions].
func (s *Store) LoadEvents(ctx context.Context, all iter.Seq[LoadedEvent]) error {
	next, stop := iter.Pull(all)
	defer stop()
	columns := []string{
		"session_key", "seq", "role", "content", "sender_id", "sender_nick", "msg_id", "tokens", "created_at", "terms",
	}
	_, err := s.pool.CopyFrom(ctx, pgx.Identifier{"dingtalk_session_events"}, columns, pgx.CopyFromFunc(func() ([]any, error) {
		e, ok := next()
		if !ok {
			return nil, nil //nolint:nilnil // that is how the rows end
		}
		text := clean(e.Content)
		var msgID *string
		if e.Role == sessions.RoleUser {
			id := fmt.Sprint("loaded-", e.Seq)
			msgID = &id
		}
		return []any{
			e.Key, e.Seq, string(e.Role), text, clean(string(e.SenderID)), clean(e.SenderNick), msgID, count(e.Tokens), e.CreatedAt,
			eventTerms(e.Key, text),
		}, nil
	}))
	if err != nil {
		return fmt.Errorf("loading events: %w", err)
	}
	return nil
}

// FactText is what contents have in common that say the same in the same words: of such a scope holds one.
func FactText(content string) string { return normal(clean(content)) }

// LoadMemories stores memories under the ids that they have, which nothing else may take later. See
// [Store.LoadSessions].
func (s *Store) LoadMemories(ctx context.Context, all []memory.Memory) error {
	columns := []string{
		"scope", "scope_id", "id", "kind", "content", "norm_hash", "subject_id", "source_session", "created_at", "terms",
	}
	_, err := s.pool.CopyFrom(ctx, pgx.Identifier{"memories"}, columns, pgx.CopyFromSlice(len(all), func(i int) ([]any, error) {
		m := &all[i]
		d := memory.Draft{Scope: m.Scope, ScopeID: m.ScopeID, Content: clean(m.Content)}
		return []any{
			string(m.Scope), m.ScopeID, m.ID, string(m.Kind), d.Content, factHash(d, robotOf(m.SourceSession)),
			clean(string(m.SubjectID)), m.SourceSession, m.CreatedAt, memoryTerms(m.Scope, m.ScopeID, d.Content),
		}, nil
	}))
	if err != nil {
		return fmt.Errorf("loading %d memories: %w", len(all), err)
	}
	return nil
}

// LoadUnindexed takes the index on the terms of events away while do loads many, and makes it anew: that takes a tenth of
// the time.
func (s *Store) LoadUnindexed(ctx context.Context, do func() error) error {
	var definition string
	if err := s.pool.QueryRow(ctx, loadIndex).Scan(&definition); err != nil {
		return fmt.Errorf("looking for the index on terms: %w", err)
	}
	if _, err := s.pool.Exec(ctx, loadDrop); err != nil {
		return fmt.Errorf("dropping the index on terms: %w", err)
	}
	if err := do(); err != nil {
		return err
	}
	if _, err := s.pool.Exec(ctx, definition); err != nil {
		return fmt.Errorf("making the index on terms: %w", err)
	}
	return nil
}

// LoadEnd has the server look at what was loaded, so that it plans for it, and write it to disk.
func (s *Store) LoadEnd(ctx context.Context) error {
	for _, order := range []string{yardstickVacuum, yardstickCheckpoint} {
		if _, err := s.pool.Exec(ctx, order); err != nil {
			return fmt.Errorf("settling what was loaded: %w", err)
		}
	}
	return nil
}
