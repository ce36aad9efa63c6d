package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/jackc/pgx/v5"

	"ebb/sql/sqltest"
)

// audited are the commands that change data or show a private chat, with an example. KEY is a session, PRIVATE a private chat, ID
// a memory of a group, and SECRET one of the private chat. ATTEMPT is a compaction there, DEAD a message that was set aside, and FILE
// an older bot's conversation. action is that of each row.
var audited = map[string]struct{ args, action string }{
	"sessions show":     {"PRIVATE", "view_private"},
	"sessions export":   {"PRIVATE", "view_private"},
	"sessions import":   {"FILE --robot robot --conversation cidOld", "import"},
	"sessions erase":    {"KEY 1 --yes", "erase"},
	"sessions delete":   {"KEY --yes", "delete"},
	"compactions undo":  {"KEY", "undo"},
	"deadletters retry": {"DEAD", "retry"},
	"memory show":       {"SECRET", "view_private"},
	"compactions show":  {"ATTEMPT", "view_private"},
	"memory export":     {"--person u1", "export_person view_private"},
	"memory forget":     {"ID --yes", "forget"},
	"memory promote":    {"ID", "promote"},
	"calls resume":      {"", "resume_calls"},
}

// unaudited are the other commands.
var unaudited = map[string]string{
	"serve": "its turns are in the log", "chat": "its turns are in the log", "migrate up": "the schema, before there is an audit",
	"migrate distribute": "the place of tables", "migrate status": "reads", "doctor": "reads", "sessions list": "reads", "compactions list": "reads",
	"compactions cost": "reads", "debts": "reads", "deadletters list": "reads", "calls list": "reads", "restarts": "reads",
	"memory list": "reads", "config check": "reads a file", "config print": "reads a file", "init": "writes a file, before there is an audit",
	"healthcheck": "reads", "version": "reads",
}

// Each command is known as one that changes data or not, so that a new one can't miss the audit.
func TestEachCommandIsAuditedOrReads(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(&cli{})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, leaf := range parser.Model.Leaves(false) {
		path := strings.TrimPrefix(leaf.FullPath(), parser.Model.Name+" ")
		found[path] = true
		_, changes := audited[path]
		if _, reads := unaudited[path]; reads == changes {
			t.Errorf("bot %s: is it in the audit or not? It has to be in one of the tables", path)
		}
	}
	if known := len(audited) + len(unaudited); len(found) != known {
		t.Errorf("%d commands, and %d in the tables", len(found), known)
	}
}

// Each command that changes data, or shows a private chat, leaves its rows in the audit, with outcome and account.
func TestChangingCommandsAreAudited(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "old.json")
	if err := os.WriteFile(file, []byte(`{"messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}], "last_consolidated": 0}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for command, c := range audited {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			url := sqltest.URL(t)
			fillLog(t, url)
			conn, err := pgx.Connect(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close(t.Context()) })
			one := func(query string) (n int64) {
				t.Helper()
				if err := conn.QueryRow(t.Context(), query).Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n
			}
			memory := one(`INSERT INTO memories (scope, scope_id, kind, content, norm_hash, source_session, source_group)
				VALUES ('group', 'robot/cidExport', 'decision', 'the release is on Friday', '\x01', 'robot/cidExport', 'robot/cidExport') RETURNING id`)
			one(`WITH s AS (INSERT INTO session_summaries (session_key, gen, start_seq, end_seq, start_msg_id, end_msg_id, msg_count, summary, tokens)
					VALUES ('robot/cidExport', 0, 1, 3, 1, 3, 3, 'the summary', 5) RETURNING id),
				u AS (UPDATE dingtalk_sessions SET compacted_seq = 3 WHERE session_key = 'robot/cidExport')
				INSERT INTO compaction_log (session_key, outcome, start_seq, end_seq, summary_id, view_before)
				SELECT 'robot/cidExport', 'committed', 1, 3, s.id, '{"cursor": 0, "summaries": [], "pinned": ""}' FROM s RETURNING id`)
			one(`INSERT INTO dingtalk_sessions (session_key, robot_code, conversation_id, conversation_type) VALUES ('robot/cidPrivate', 'robot', 'cidPrivate', '1') RETURNING 1`)
			secret := one(`INSERT INTO memories (scope, scope_id, kind, content, norm_hash, source_session)
				VALUES ('user', 'u1', 'fact', 'the salary is 9,000', '\x02', 'robot/cidPrivate') RETURNING id`)
			attempt := one(`INSERT INTO compaction_log (session_key, outcome, start_seq, end_seq) VALUES ('robot/cidPrivate', 'failed', 1, 2) RETURNING id`)
			one(`INSERT INTO api_months (month, quota) VALUES (to_char(now() AT TIME ZONE 'Asia/Shanghai', 'YYYY-MM'), 5000) RETURNING 1`)
			args := strings.Fields(command + " " + strings.NewReplacer(
				"KEY", string(exportKey), "PRIVATE", "robot/cidPrivate", "ID", fmt.Sprint(memory), "SECRET", fmt.Sprint(secret), "ATTEMPT", fmt.Sprint(attempt), "FILE", file,
				"DEAD", fmt.Sprint(one("SELECT id FROM dingtalk_session_events WHERE state = 'dead'")),
			).Replace(c.args))
			if code, _, stderr := runBot(t, env("DATABASE_URL", url), slices.Concat(args, []string{"-c", referencePath})...); code != 0 {
				t.Fatalf("exit %d, %q", code, stderr)
			}
			rows, err := conn.Query(t.Context(), "SELECT action || ' ' || outcome || ' ' || actor FROM audit ORDER BY id")
			if err != nil {
				t.Fatal(err)
			}
			got, err := pgx.CollectRows(rows, pgx.RowTo[string])
			var want []string
			for action := range strings.FieldsSeq(c.action) {
				want = append(want, action+" done "+operator.Name)
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("the audit has %q (%v), want %q", got, err, want)
			}
		})
	}
}
