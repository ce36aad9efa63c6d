package console_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/memory"
	"ebb/memory/pages"
	"ebb/sessions"
	"ebb/sql/console"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// list reads one page of a list: the names of its rows, and the cursor of the next page.
type list func(p pages.Page) (rows []string, next string, err error)

// listOf is a list by the function that reads it.
func listOf[T any](read func(pages.Page) ([]T, string, error), name func(T) string) list {
	return func(p pages.Page) (names []string, next string, err error) {
		rows, next, err := read(p)
		for _, r := range rows {
			names = append(names, name(r))
		}
		return names, next, err
	}
}

// listsOf are the lists of the console, by the names in their cursors.
func listsOf(t *testing.T, s *console.Store) map[string]list {
	t.Helper()
	ctx := t.Context()
	sessionsOf := func(fixed bool) list {
		return listOf(func(p pages.Page) ([]pages.SessionRow, string, error) {
			p.Fixed = fixed
			return s.Sessions(ctx, pages.SessionFilter{}, p)
		}, func(r pages.SessionRow) string { return string(r.Key) })
	}
	schedulesOf := func(fixed bool) list {
		return listOf(func(p pages.Page) ([]pages.ScheduleRow, string, error) {
			p.Fixed = fixed
			return s.Schedules(ctx, pages.ScheduleFilter{}, p)
		}, func(r pages.ScheduleRow) string { return fmt.Sprint(r.Key, r.ID) })
	}
	return map[string]list{
		pages.ListSessions: sessionsOf(false), pages.ListSessionsByKey: sessionsOf(true),
		pages.ListSchedules: schedulesOf(false), pages.ListSchedulesByKey: schedulesOf(true),
		pages.ListFiles: listOf(func(p pages.Page) ([]pages.FileRow, string, error) { return s.Files(ctx, pages.FileFilter{}, p) },
			func(r pages.FileRow) string { return fmt.Sprint(r.Key, r.ID) }),
		pages.ListCompactions: listOf(func(p pages.Page) ([]pages.CompactionRow, string, error) {
			return s.Compactions(ctx, pages.CompactionFilter{}, p)
		}, func(r pages.CompactionRow) string { return fmt.Sprint(r.ID) }),
		pages.ListTalk: listOf(func(p pages.Page) ([]sessions.Event, string, error) { return s.Talk(ctx, "robot/s1", p) },
			func(e sessions.Event) string { return fmt.Sprint(e.Seq) }),
		pages.ListMemories: listOf(func(p pages.Page) ([]memory.Memory, string, error) { return s.Memories(ctx, pages.MemoryFilter{}, p) },
			func(m memory.Memory) string { return fmt.Sprint(m.ID) }),
		pages.ListActions: listOf(func(p pages.Page) ([]pages.Action, string, error) { return s.Actions(ctx, nil, p) },
			func(a pages.Action) string { return fmt.Sprint(a.ID) }),
		pages.ListRestarts: listOf(func(p pages.Page) ([]sessions.Restart, string, error) { return s.Restarts(ctx, p) },
			func(r sessions.Restart) string { return string(r.Replica) }),
		pages.ListExpiring: listOf(func(p pages.Page) ([]pages.Expiring, string, error) {
			return s.Expiring(ctx, time.Hour, time.Minute, p)
		},
			func(e pages.Expiring) string { return string(e.Key) }),
		pages.ListUsage: listOf(func(p pages.Page) ([]pages.Usage, string, error) {
			return s.UsageList(ctx, time.Now().Add(-99*time.Hour), pages.UsageBy{Session: true, Model: true}, p)
		}, func(u pages.Usage) string { return fmt.Sprint(u.Key, u.Model) }),
		pages.ListPeople: listOf(func(p pages.Page) ([]pages.Speaker, string, error) { return s.People(ctx, pages.PeopleFilter{}, p) },
			func(p pages.Speaker) string { return string(p.ID) }),
	}
}

// fillLists makes some rows of each list, most of them with equal times.
func fillLists(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	for _, statement := range []string{
		`INSERT INTO dingtalk_sessions (session_key, robot_code, conversation_id, conversation_type, last_seq, last_active_at)
		 SELECT 'robot/s' || i, 'robot', 's' || i, '2', 7, now() - interval '1 hour' * (i % 3) FROM generate_series(1, 9) i`,
		`INSERT INTO dingtalk_session_events (session_key, seq, role, content, sender_id, sender_nick, msg_id, created_at)
		 SELECT 'robot/s' || s, i, 'user', 'said', 'p' || i, 'nick', 'm' || i, now() - interval '3 hours' FROM generate_series(1, 9) s, generate_series(1, 7) i`,
		`INSERT INTO people (session_key, person, nick, spoke, seen_at) SELECT 'robot/s' || s, 'p' || i, 'nick', true, now() FROM generate_series(1, 9) s, generate_series(1, 7) i`,
		`INSERT INTO compaction_log (session_key, outcome, created_at) SELECT 'robot/s' || i % 3 + 1, 'failed', now() - interval '1 hour' * (i % 2) FROM generate_series(1, 8) i`,
		`INSERT INTO schedules (session_key, id, kind, due_at, spec, text, created_by, creator, origin, state, settled_at)
		 SELECT 'robot/s' || i % 3 + 1, i, 'remind', now() + interval '1 hour' * (i % 2), '', 't', 'u', '{}', 'o' || i, CASE WHEN i > 4 THEN 'done' ELSE 'active' END,
		    CASE WHEN i > 4 THEN now() END FROM generate_series(1, 8) i`,
		`INSERT INTO files (session_key, name, kind, media_id, bytes, pages, event_id, kept_event)
		 SELECT 'robot/s' || i % 3 + 1, 'f' || i, 'docx', 'm' || i, 1, 1, 0, 0 FROM generate_series(1, 8) i`,
		`INSERT INTO memories (scope, scope_id, kind, content, norm_hash, source_session)
		 SELECT 'group', 'robot/s1', 'fact', 'fact ' || i, sha256(convert_to('fact ' || i, 'UTF8')), 'robot/s1' FROM generate_series(1, 8) i`,
		`INSERT INTO audit (session_key, actor, action) SELECT 'robot/s' || i % 3, 'admin', 'undo' FROM generate_series(1, 8) i`,
		`INSERT INTO restarts (replica, started_at) SELECT 'r' || i, now() - interval '1 hour' * (i % 2) FROM generate_series(1, 8) i`,
		`INSERT INTO model_usage (session_key, day, kind, model, person, prompt_tokens)
		 SELECT 'robot/s' || i % 3, current_date, 'turn', 'm' || i % 4, 'p' || i, i FROM generate_series(1, 24) i`,
	} {
		storetest.Execute(t, pool, statement)
	}
}

// Law: pages of any size have each row of a list once, in the list's order, and no list takes the cursor of another one.
func TestPagesHaveEachRowOnce(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	fillLists(t, pool)
	lists, cursors := listsOf(t, s.Pages()), map[string]string{}
	for name, read := range lists {
		whole, next, err := read(pages.Page{Limit: 100})
		if err != nil || next != "" || len(whole) < 7 {
			t.Fatalf("%s: %d rows on one page, with the cursor %q behind it (%v)", name, len(whole), next, err)
		}
		for limit := 1; limit <= len(whole)+1; limit++ {
			var rows []string
			for cursor, turned := "", 0; turned <= len(whole); turned++ {
				page, next, err := read(pages.Page{Limit: limit, Cursor: cursor})
				if err != nil || len(page) > limit {
					t.Fatalf("%s: a page of %d has %d rows (%v)", name, limit, len(page), err)
				}
				if name == pages.ListTalk { // older pages come before
					rows = append(page, rows...)
				} else {
					rows = append(rows, page...)
				}
				if cursor = next; next == "" {
					break
				}
				cursors[name] = next
			}
			if !slices.Equal(rows, whole) {
				t.Errorf("%s: pages of %d have %q, want %q", name, limit, rows, whole)
			}
		}
	}
	for name, read := range lists {
		for other, cursor := range cursors {
			if _, _, err := read(pages.Page{Limit: 3, Cursor: cursor}); other != name && !errors.Is(err, pages.ErrCursor) {
				t.Errorf("%s takes a cursor of %s: %v", name, other, err)
			}
		}
	}
}

// A row that comes between two pages moves none of the later rows.
func TestNewRowsMoveNoPage(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	fillLists(t, pool)
	for _, name := range []string{pages.ListActions, pages.ListMemories, pages.ListCompactions} {
		read := listsOf(t, s.Pages())[name]
		whole, _, _ := read(pages.Page{Limit: 100})
		first, next, err := read(pages.Page{Limit: 3})
		if err != nil {
			t.Fatal(err)
		}
		fill := map[string]string{
			pages.ListActions:     "INSERT INTO audit (session_key, actor, action) VALUES ('robot/s1', 'admin', 'undo')",
			pages.ListMemories:    `INSERT INTO memories (scope, scope_id, kind, content, norm_hash, source_session) VALUES ('group', 'robot/s1', 'fact', 'new', '\x01', 'robot/s1')`,
			pages.ListCompactions: "INSERT INTO compaction_log (session_key, outcome, created_at) VALUES ('robot/s1', 'failed', now())",
		}
		storetest.Execute(t, pool, fill[name])
		rest, _, err := read(pages.Page{Limit: 100, Cursor: next})
		if got := append(first, rest...); err != nil || !slices.Equal(got, whole) {
			t.Errorf("%s: %q (%v), want %q", name, got, err, whole)
		}
	}
}
