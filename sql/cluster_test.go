package sql_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"ebb/sql/sqltest"
)

// several ask more than one node, though they name sessions or are about memory, whose rows are distributed by scope.
var several = []string{
	"LeasesIdle",                                                                     // background: which of a replica's sessions rest
	"NicksSeen",                                                                      // a search, where a name stands for a person
	"MessagePlace",                                                                   // before a message that may belong to one of several sessions
	"MemoriesUnembedded", "EmbeddingsOutdated", "EmbeddingsKnown", "EmbeddingsExact", // vectors of several scopes
	"PageWork", "PageApprovals", "SessionTitles", // for admins
	// A person's rights.
	"SessionsSpoken", "SessionsTelling", "SessionsReadScope", "AuditUnname", "FlushesForget", "PinnedBeforeErase", "PinnedErase", "ReadersToLock", "EmbeddingsDelete",
}

// A notification is a statement without tables: a cluster executes others on a node where no replica listens.
func TestNotificationsReadNoTable(t *testing.T) {
	t.Parallel()
	from := regexp.MustCompile(`\b(?:FROM|UPDATE|INTO)\b`)
	n := 0
	for name, text := range statements(t) {
		if !strings.Contains(text, "pg_notify") {
			continue
		}
		if n++; from.MatchString(text) {
			t.Errorf("%s notifies beside tables", name)
		}
	}
	if n == 0 {
		t.Error("no statement notifies")
	}
}

// generated are the statements as the program sends them, by the files of their queries and their names.
func generated(t *testing.T) map[string]string {
	t.Helper()
	queries, err := filepath.Glob("queries/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range queries {
		for _, m := range named.FindAllStringSubmatch(read(t, f), -1) {
			files[m[1]] = strings.TrimSuffix(filepath.Base(f), ".sql")
		}
	}
	code, err := filepath.Glob("dbsqlc/*.go")
	if err != nil || len(code) == 0 {
		t.Fatalf("%d files of generated code, %v", len(code), err)
	}
	all := map[string]string{}
	for _, f := range code {
		for _, m := range regexp.MustCompile("(?s)const \\w+ = (`(?:[^`]|` \\+ \"`\" \\+ `)*`)").FindAllStringSubmatch(read(t, f), -1) {
			body := strings.ReplaceAll(strings.Trim(m[1], "`"), "` + \"`\" + `", "`")
			name := regexp.MustCompile(`^-- name: (\w+) :`).FindStringSubmatch(body)
			if name != nil && files[name[1]] != "yardstick" { // for a table of its own
				all[files[name[1]]+" "+name[1]] = body
			}
		}
	}
	return all
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// samples are values by type. Texts are valid as JSON and as arrays, too; as keys they are on several nodes.
var samples = map[uint32]string{
	pgtype.TextOID: "'{}'::text", pgtype.Int4OID: "1::int", pgtype.Int8OID: "1::bigint", pgtype.BoolOID: "true", pgtype.Float8OID: "1::float8",
	pgtype.ByteaOID: `'\x01'::bytea`, pgtype.TimestamptzOID: "'2026-01-02 03:04:05Z'::timestamptz", pgtype.DateOID: "'2026-01-02'::date",
	pgtype.JSONBOID: "'{}'::jsonb", pgtype.TextArrayOID: "ARRAY['{}', ' {}', '{ }', '  {}', '{  }']", pgtype.Int8ArrayOID: "ARRAY[1, 2]::bigint[]",
	pgtype.ByteaArrayOID: `ARRAY['\x01', '\x02']::bytea[]`, pgtype.Float8ArrayOID: "ARRAY[1, 2]::float8[]", pgtype.Float4ArrayOID: "ARRAY[1, 2]::real[]",
	pgtype.TimestamptzArrayOID: "ARRAY['2026-01-02 03:04:05Z', '2026-01-03 03:04:05Z']::timestamptz[]",
	pgtype.Int4ArrayOID:        "ARRAY[1, 2]::int[]", pgtype.BoolArrayOID: "ARRAY[true, false]",
	pgtype.DateArrayOID: "ARRAY['2026-01-02', '2026-01-03']::date[]",
}

var jobs = regexp.MustCompile(`Custom Scan \(Citus`)

// planKind is local, router, router+subplans, multishard, multishard+subplans, or refused with the reason.
func planKind(t *testing.T, conn *pgx.Conn, name, statement string) string {
	t.Helper()
	ctx := t.Context()
	if _, err := conn.Exec(ctx, "BEGIN", pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if _, err := conn.Exec(ctx, "ROLLBACK", pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
		if err := conn.Deallocate(ctx, "s"); err != nil {
			t.Fatal(err)
		}
	}()
	prepared, err := conn.Prepare(ctx, "s", statement)
	if err != nil {
		return "refused: " + words(err)
	}
	args := make([]string, len(prepared.ParamOIDs))
	for i, oid := range prepared.ParamOIDs {
		if args[i] = samples[oid]; args[i] == "" {
			t.Fatalf("%s has a parameter of an unknown type %d", name, oid)
		}
	}
	execute := "EXECUTE s"
	if len(args) > 0 {
		execute += " (" + strings.Join(args, ", ") + ")"
	}
	if strings.Contains(statement, "LISTEN") {
		return "local"
	}
	// EXPLAIN EXECUTE refuses statements that EXECUTE takes.
	filled := regexp.MustCompile(`\$\d+`).ReplaceAllStringFunc(statement, func(p string) string {
		i, _ := strconv.Atoi(p[1:])
		return args[i-1]
	})
	rows, err := conn.Query(ctx, "EXPLAIN (COSTS OFF) "+filled, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return "refused: " + words(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return "refused: " + words(err)
	}
	plan, kind := strings.Join(lines, "\n"), "local"
	if n := len(jobs.FindAllString(plan, -1)); n > 0 {
		kind = "router"
		if regexp.MustCompile(`Task Count: (?:[2-9]|\d\d)`).MatchString(plan) {
			kind = "multishard"
		}
		if strings.Contains(plan, "Subplan") || strings.Contains(plan, "INSERT ... SELECT method") {
			kind += "+subplans"
		}
	}
	if _, err := conn.Exec(ctx, execute, pgx.QueryExecModeSimpleProtocol); err != nil {
		var fault *pgconn.PgError
		if errors.As(err, &fault) && (fault.Code == "0A000" || strings.HasPrefix(fault.Code, "XX") || strings.HasPrefix(fault.Code, "42")) {
			return "refused: at its execution, " + words(err)
		}
	}
	return kind
}

func words(err error) string {
	var fault *pgconn.PgError
	if errors.As(err, &fault) {
		return fault.Message
	}
	return err.Error()
}

// Each statement is one that the server plans and executes. On a cluster no statement is refused, and one that names its session
// asks one node. The list of kinds is a file if EBB_TEST_PLANS names it.
func TestStatementsArePlanned(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), sqltest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	all, counts, list := generated(t), map[string]int{}, ""
	if len(all) < 300 {
		t.Fatalf("%d statements are known", len(all))
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		file, name, _ := strings.Cut(key, " ")
		kind := planKind(t, conn, name, all[key])
		list += fmt.Sprintf("%-22s %-26s %s\n", file, name, kind)
		short, reason, refused := strings.Cut(kind, ": ")
		counts[short]++
		switch {
		case refused:
			t.Errorf("%s is refused: %s", name, reason)
		case !sqltest.OnCluster() && kind != "local":
			t.Errorf("%s has the plan of a cluster: %s", name, kind)
		case strings.HasPrefix(kind, "multishard") && overAllSessions[name] == "" && !slices.Contains(several, name):
			t.Errorf("%s asks several nodes", name)
		}
	}
	list += fmt.Sprint(counts)
	t.Log(counts)
	if to := os.Getenv("EBB_TEST_PLANS"); to != "" {
		if err := os.WriteFile(to, []byte(list+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
