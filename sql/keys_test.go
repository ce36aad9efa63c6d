package sql_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ebb/sql/sqltest"
)

// An engine that spreads rows over many servers keeps a session together by session_key. It answers a statement from
// one of them when the statement names its session. So each statement names it, for each table that it touches. The
// exceptions ask all servers; accepting a message, turns, replies, flushes and compactions are not among them.
var overAllSessions = map[string]string{
	"SuspectSessions": "a message that fell with two processes: the sessions with such messages, by the index of pending ones",
	"SpendDay":        "a limit of the installation: the tokens of a day, by an index on the day; without the limit it does not run",
	"UsageOfOthers":   "a turn of a person beyond a fifth of tokens_per_day: the tokens of others, by an index on the day, at most once a minute where there are many",

	"SessionsWaiting":   "the sweep: what waits anywhere, once a second, by partial indexes that hold what is open",
	"DeadLettersList":   "administrators: messages that were set aside anywhere, by a partial index",
	"DeadLetterRetry":   "administrators: one message by its id, by the same index",
	"SessionsMissing":   "the sweep: what waits anywhere without a session, by the same index",
	"FramesOpen":        "an erasure, before its receipt: frames in flight of terms that have ended, by a partial index that holds what is open",
	"RobotResume":       "the start of a process: the replies of a robot that wait, by the partial index of open ones",
	"RobotLeft":         "doctor, and the start of a process: the open work of a robot that is not configured any more",
	"CardsAbandoned":    "the sweep: cards without a turn or a reply, by a partial index that holds what is open",
	"LeasesFree":        "a stop: the leases of one replica, once",
	"RepliesResume":     "an operator's word about the calls of all conversations: the replies that wait, by the partial index of open ones",
	"OutboxPutDown":     "a stop: the open replies of one replica, once",
	"OutboxLeave":       "a stop: the open replies of one replica, once",
	"SessionsUnflushed": "a stop: the sessions of one replica, once or twice",
	"EventsGone":        "a stop: the messages that one replica acknowledged, once",

	"ScheduleNumber":          "a new reminder: the next number of its conversation, by the index of conversations",
	"SchedulesOfConversation": "a person's list of reminders, and the bound of a new one: those of its conversation, by the index of conversations",
	"ScheduleFind":            "a change of a reminder: one row of its conversation, by the index of conversations",
	"SchedulesDue":            "background: reminders whose time has come, once a second, by a partial index that holds what is active",
	"SchedulesExpire":         "background: rows past their retention period, by an index on the time",
	"ApprovalsCount":          "background: a metric, every ten seconds, by a partial index that holds what waits",
	"ApprovalsDue":            "background: calls that waited too long for approval, every two seconds, by a partial index that holds what waits",
	"ApprovalsExpire":         "background: rows past their retention period, by an index on the time",
	"PicturesExpire":          "background: pictures past their retention period, by an index on the time",
	"ApprovalsStrip":          "background: the last row of each session past its retention period, by an index on the time",
	"SchedulesOfPerson":       "a new reminder: the active ones of its creator, by an index on the person",
	"SchedulesOutstanding":    "a new reminder: the active ones of the month, which share its calls if they are of one robot, by a partial index on their times",
	"CardClicked":             "a click: the session of a card, by an index on the card",
	"ExpiredLogs":             "background: logs without a session, by the key of people",
	"ExpiredSessions":         "background: sessions with events past their retention period, by an index on session and time",
	"CompactionsExpire":       "background: rows past their retention period, by an index on the time",
	"SentFilesExpire":         "background: files to send that no open reply has, by an index on the time",
	"RepliesExpire":           "background: rows past their retention period, by an index on the time",
	"ActionsExpire":           "background: rows past their retention period, by an index on the time",
	"PageExpiring":            "for admins: a page of sessions with events past their retention period, by an index on session and time",
	"PageExpiringRows":        "for admins: counts of rows past their retention periods, by indexes on the time",

	"PagePeople":            "for admins: a page of people, by an index on the person",
	"PagePeopleLike":        "for admins: a page of people by their names, by an index on the name",
	"PageSpoke":             "for admins: the conversations of one person, by an index on the person",
	"PeopleNamed":           "for admins: the people of a name, by indexes on name and person",
	"PeopleNames":           "for admins: the names of the people of a page, by an index on the person",
	"PeopleNamesAnywhere":   "for admins: the names of the people of a page, by an index on the person alone",
	"CompactionRequestsDue": "background: the few compactions that administrators asked for",

	"UsageRows":   "for admins: a page of the usage of a period, by the primary key",
	"UsageGroups": "for admins: sums of the usage of a period, by an index on the day",
	"UsageUnname": "a person's rights: the usage of a person anywhere, by an index on the person",

	"UsagePeople":              "background: a page of the people with usage, once an hour, by an index on the person",
	"PeopleSpoke":              "background: those of a page of people who spoke, once an hour, by an index on the person",
	"PeopleKept":               "background: those of some encrypted ids under which rows are stored, once an hour, by indexes on the person",
	"AuditMembers":             "background: a page of the sessions of members in the audit, once an hour, by an index on the session",
	"CardsExpire":              "background: cards that were settled a while ago, once an hour, by an index on the time",
	"DebtsDue":                 "background: what is owed anywhere, twice a minute",
	"SessionsBacklog":          "background: sessions whose logs wait for summaries",
	"SessionsIdle":             "background: what rests anywhere, twice a minute",
	"DigestsDue":               "background: days of groups without a digest",
	"SessionsUnindexed":        "background: sessions whose logs wait for the index, each ten minutes",
	"SessionsUnembedded":       "background: sessions whose events have no vectors yet",
	"EmbeddingCursorsOutdated": "background: once for a new model of vectors",

	"DebtsList":         "for admins: a list",
	"PageGroupSessions": "for admins: the sessions of a group, by the index of conversations",
	"SpendSums":         "for admins: sums of all sessions, or of some",
	"PageAudit":         "for admins: a page, by an index on the id",
	"PageCounts":        "for admins: open work, by partial indexes, and a day of compactions by an index on the time",
	"PageReplicas":      "for admins: the leases of the replicas",
	"PageSessions":      "for admins: a page of sessions",
	"SessionsList":      "for admins: a list",
	"CardsGivenUp":      "for admins: a count, by a partial index",
	"CompactionFind":    "for admins: a row by its number",
	"CompactionsEnds":   "for admins: rows by their numbers",

	"PersonRecords":     "a person's rights: usage, promotions and actions anywhere, by indexes on the person",
	"SchedulesForget":   "a person's rights: the reminders that they set, by an index on the person",
	"FilesForget":       "a person's rights: the kept files that they sent or kept, by indexes on the person",
	"FilesUnname":       "a person's rights: the kept files of others that they kept, by an index on the person",
	"ApprovalsForget":   "a person's rights: calls that they asked for or decided on, by indexes on the person",
	"AuditOfMembers":    "a person's rights: actions on their sessions, by an index on the person",
	"AuditUnact":        "a person's rights: actions that they took, by an index on the actor",
	"AuditForget":       "a person's rights: actions that concerned them, by an index on the person",
	"PersonLogs":        "a person's rights: where they spoke or are quoted, by an index on the person",
	"PersonNicks":       "a person's rights: their names anywhere, by an index on the person",
	"AuditEnd":          "for admins: the end of an action by its number, by an index on it",
	"CompactionsUnname": "a person's rights: compactions that they asked for, by an index on the person",
	"PersonSessions":    "a person's rights: where they are",
	"DigestsDrop":       "a person's rights: digests of memory that is no more",
	"DigestsReopen":     "a person's rights: digests of memory that is no more",
	"SessionsReading":   "a person's rights: conversations that may read memory that is no more",
	"EmbeddingsErase":   "a person's rights: vectors of texts that are no more",

	"InspectApprovals": "the chaos test's look at everything",
	"InspectGaps":      "the chaos test's look at everything",
	"InspectLog":       "the chaos test's look at everything",
	"InspectOpen":      "the chaos test's look at everything",
	"InspectReplies":   "the chaos test's look at everything",
	"InspectSessions":  "the chaos test's look at everything",
	"InspectTerms":     "the chaos test's look at everything",
}

var (
	named   = regexp.MustCompile(`(?m)^-- name: (\w+) :\w+$`)
	comment = regexp.MustCompile(`--[^\n]*`)
	word    = regexp.MustCompile(`^\s+(?:(?:AS|as)\s+)?([a-z]\w*)`)
)

// statements are the queries by their names, without comments.
func statements(t *testing.T) map[string]string {
	t.Helper()
	return statementsOf(t, "*")
}

// statementsOf are the queries of some files.
func statementsOf(t *testing.T, names ...string) map[string]string {
	t.Helper()
	var files []string
	for _, name := range names {
		some, err := filepath.Glob("queries/" + name + ".sql")
		if err != nil || len(some) == 0 {
			t.Fatalf("%d files of queries %s, %v", len(some), name, err)
		}
		files = append(files, some...)
	}
	all := map[string]string{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		at := named.FindAllSubmatchIndex(text, -1)
		for i, m := range at {
			end := len(text)
			if i+1 < len(at) {
				end = at[i+1][0]
			}
			all[string(text[m[2]:m[3]])] = comment.ReplaceAllString(string(text[m[1]:end]), "")
		}
	}
	return all
}

// sessionTables are the tables that have a session_key, as the schema stands.
func sessionTables(t *testing.T) []string {
	t.Helper()
	rows, err := sqltest.New(t).Query(t.Context(), `SELECT table_name FROM information_schema.columns
		WHERE table_schema = 'public' AND column_name = 'session_key' ORDER BY table_name`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var tables []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		tables = append(tables, name)
	}
	if rows.Err() != nil || len(tables) < 10 {
		t.Fatalf("tables of sessions are %v, %v", tables, rows.Err())
	}
	return tables
}

// loose names the places where a statement touches one of the tables without saying of which session.
func loose(statement string, tables []string) []string {
	var found []string
	for _, table := range tables {
		for _, m := range regexp.MustCompile(`(?:^|[^.@\w])(`+table+`)(?:\s|$)`).FindAllStringSubmatchIndex(statement, -1) {
			before, after := statement[:m[2]], statement[m[3]:]
			if strings.HasPrefix(strings.TrimSpace(after), "=") {
				continue // a column of the same name gets a value
			}
			alias := table
			if w := word.FindStringSubmatch(after); w != nil {
				alias = w[1]
			}
			said := regexp.MustCompile(`\b` + alias + `\.session_key\s*(?:(?:COLLATE "C" )?=|IN\b)|=\s*` + alias + `\.session_key\b`)
			if strings.HasSuffix(strings.TrimRight(before, " \n"), "INSERT INTO") {
				columns := after[strings.Index(after, "("):strings.Index(after, ")")]
				if !regexp.MustCompile(`\bsession_key\b`).MatchString(columns) {
					found = append(found, fmt.Sprintf("a row of %s without session_key", table))
				}
			} else if !said.MatchString(statement) {
				found = append(found, fmt.Sprintf("%s (as %s)", table, alias))
			}
		}
	}
	given := strings.Contains(statement, "@session_key") || strings.Contains(statement, "session_key = @scope_key") // which is one
	if len(found) == 0 && !given && slices.ContainsFunc(tables, func(table string) bool {
		return regexp.MustCompile(`(?:^|[^.@\w])` + table + `\b`).MatchString(statement)
	}) {
		found = append(found, "no session is given")
	}
	return found
}

func TestEveryStatementNamesItsSession(t *testing.T) {
	t.Parallel()
	all, tables := statements(t), sessionTables(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if regexp.MustCompile(`(?i)advisory|\bLOCK TABLE\b`).MatchString(all[name]) {
			t.Errorf("%s takes a lock that belongs to no row", name)
		}
		places := loose(all[name], tables)
		reason, excepted := overAllSessions[name]
		switch {
		case len(places) > 0 && !excepted:
			t.Errorf("%s says of no session: %s", name, strings.Join(places, ", "))
		case len(places) == 0 && excepted:
			t.Errorf("%s names its session and needs no exception (%s)", name, reason)
		}
	}
	for name, reason := range overAllSessions {
		if all[name] == "" || reason == "" {
			t.Errorf("the exception %s is of no statement, or has no reason", name)
		}
	}
}

// Keys that must be unique begin with session_key: no server has to ask another whether a row is there.
func TestEveryKeyBeginsWithItsSession(t *testing.T) {
	t.Parallel()
	rows, err := sqltest.New(t).Query(t.Context(), `SELECT t.relname, i.relname, a.attname
		FROM pg_index x
		JOIN pg_class t ON t.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid
		JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = x.indkey[0]
		WHERE x.indisunique AND t.relnamespace = 'public'::regnamespace
		  AND EXISTS (SELECT FROM pg_attribute k WHERE k.attrelid = t.oid AND k.attname = 'session_key')`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	n := 0
	for rows.Next() {
		var table, index, first string
		if err := rows.Scan(&table, &index, &first); err != nil {
			t.Fatal(err)
		}
		if n++; first != "session_key" {
			t.Errorf("the unique index %s of %s begins with %s", index, table, first)
		}
	}
	if rows.Err() != nil || n < 10 {
		t.Errorf("%d unique indexes, %v", n, rows.Err())
	}
}

// The test itself finds what it is there for.
func TestLooseStatementsAreFound(t *testing.T) {
	t.Parallel()
	for statement, want := range map[string]int{
		"SELECT e.id FROM dingtalk_session_events e WHERE e.session_key = @session_key":                                 0,
		"SELECT e.id FROM dingtalk_session_events e WHERE e.id = @id":                                                   1,
		"SELECT e.id FROM dingtalk_session_events AS e JOIN outbox o ON o.id = e.id WHERE e.session_key = @session_key": 1,
		"SELECT e.id FROM dingtalk_session_events e, outbox o WHERE o.session_key = e.session_key":                      1,
		"INSERT INTO outbox (id, body) SELECT @session_key, @body":                                                      1,
		"INSERT INTO outbox (session_key, body) VALUES (@session_key, @body)":                                           0,
		"DELETE FROM outbox\n": 1,
		"UPDATE outbox o SET body = '' FROM (SELECT e.session_key FROM dingtalk_session_events e) h WHERE o.id = h.id": 2,
		"UPDATE sessions s SET outbox = s.outbox - 'a' WHERE s.session_key = @session_key":                             0,
		"SELECT 1": 0,
	} {
		if got := loose(statement, []string{"dingtalk_session_events", "outbox"}); len(got) != want {
			t.Errorf("%s: %q, want %d", statement, got, want)
		}
	}
}
