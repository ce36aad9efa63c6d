package sql_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ofTheWay are the files of the statements on the way of a message: acceptance, leases, turns, replies, cards, limits, tools, flushes,
// compactions, reminders, counted calls and usage.
var ofTheWay = []string{
	"inbox", "scopes", "lease", "turn", "limits", "outbox", "cards", "keep", "job", "compaction", "withheld", "schedules", "approvals",
	"calls", "memory", "debts", "requests", "spend", "people",
}

// notSmall are the statements of the way that are not small yet, or can't be.
var notSmall = map[string]string{
	"SessionContinue": "rare: a session that has fallen behind its log",
	"MemoryInsert":    "flushes: to become small",
	"MemoriesKnown":   "flushes: to become small",
	"Withhold":        "rare: a model refuses a row",
	"UsageUnname":     "a person's rights",
}

const mostLines = 40

var (
	writes   = regexp.MustCompile(`\b(?:INSERT INTO|UPDATE|DELETE FROM)\s+[a-z]\w*`)
	locks    = regexp.MustCompile(`\bFOR (?:NO KEY UPDATE|UPDATE|KEY SHARE|SHARE)\b`)
	doUpdate = regexp.MustCompile(`\bDO UPDATE\b(?s:.*?)(?:\bRETURNING\b|$)`)
	cases    = regexp.MustCompile(`(?i)\bCASE\b(?s:.*?)\bEND\b`)
	coalesce = regexp.MustCompile(`(?i)\bcoalesce\(`)
	parts    = regexp.MustCompile(`\b[a-z]\w* (?:\([^)]*\) )?AS (?:(?:NOT )?MATERIALIZED )?\(`)
	clock    = regexp.MustCompile(`\b(?:now|clock_timestamp)\(\)`)
	casts    = regexp.MustCompile(`\bSET\b[^;]*\b[a-z]\w*\.[a-z]\w*::[a-z]\w*\[\]`)
	built    = regexp.MustCompile(`\b(?:jsonb_build_object|jsonb_build_array|to_jsonb|convert_to|to_char)\(`)
)

// enclosed is the text up to the parenthesis that closes the one before it.
func enclosed(text string) string {
	depth := 1
	for i, c := range text {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 {
			return text[:i]
		}
	}
	return text
}

// faults names the rules of small statements that a statement breaks.
func faults(statement string) []string {
	var found []string
	add := func(is bool, fault string) {
		if is && !slices.Contains(found, fault) {
			found = append(found, fault)
		}
	}
	lines := strings.Split(strings.TrimSpace(statement), "\n")
	add(len(lines) > mostLines, fmt.Sprintf("has %d lines", len(lines)))
	changed := strings.ReplaceAll(strings.ReplaceAll(statement, "DO UPDATE", ""), "FOR UPDATE", "")
	changed = strings.ReplaceAll(changed, "FOR NO KEY UPDATE", "")
	add(len(writes.FindAllString(changed, -1)) > 1, "changes several tables, or one in several places")
	if strings.HasPrefix(strings.TrimSpace(statement), "WITH") {
		for _, at := range parts.FindAllStringIndex(statement, -1) {
			part := enclosed(statement[at[1]:])
			add(writes.MatchString(strings.ReplaceAll(part, "FOR UPDATE", "")), "writes in a CTE")
			add(locks.MatchString(part), "locks in a CTE")
		}
		add(strings.HasPrefix(strings.TrimSpace(statement), "WITH RECURSIVE") && !strings.Contains(statement, "@session_key"), "is recursive over all sessions")
	}
	if writes.MatchString(changed) {
		for _, fault := range changeable(statement) {
			add(true, fault)
		}
	}
	return found
}

// changeable names the places where a write asks for a value that may differ between two nodes: a cluster refuses those. The functions that
// build JSON or text read the settings of their connection.
func changeable(statement string) []string {
	var found []string
	add := func(part, place string) {
		if clock.MatchString(part) {
			found = append(found, "reads the clock in "+place)
		}
		if place != "DO UPDATE" && built.MatchString(part) {
			found = append(found, "builds JSON or text in "+place)
		}
	}
	if casts.MatchString(statement) {
		found = append(found, "casts a column to an array")
	}
	for _, part := range doUpdate.FindAllString(statement, -1) {
		add(part, "DO UPDATE")
	}
	for _, part := range cases.FindAllString(statement, -1) {
		add(part, "CASE")
	}
	for _, at := range coalesce.FindAllStringIndex(statement, -1) {
		add(enclosed(statement[at[1]:]), "coalesce")
	}
	return found
}

// changeableWrites are writes that a cluster accepts although their values may differ between nodes.
var changeableWrites = map[string]string{
	"RestartKeep":         "accounts of restarts are on the coordinator",
	"RestartsEnded":       "accounts of restarts are on the coordinator",
	"MemoryInsert":        "the coordinator computes a row of VALUES",
	"CompactionsDropUndo": "to_jsonb has only ids, and stands in a query of its own",
}

// A cluster refuses a write whose value may differ between two nodes, whether it is on the way of a message or not.
func TestWritesSuitACluster(t *testing.T) {
	t.Parallel()
	all := statementsOf(t, "*")
	if len(all) < 300 {
		t.Fatalf("%d statements were found", len(all))
	}
	for name, statement := range all {
		found := changeable(statement)
		if excepted := changeableWrites[name] != ""; writes.MatchString(statement) && excepted != (len(found) > 0) {
			t.Errorf("%s: %q, excepted: %t", name, found, excepted)
		}
	}
}

// A transaction of the way is a pipeline of small statements: each changes one table, is read at a glance, and runs on any one server.
func TestStatementsOfTheWayAreSmall(t *testing.T) {
	t.Parallel()
	all := statementsOf(t, ofTheWay...)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		found := faults(all[name])
		_, excepted := notSmall[name]
		switch {
		case len(found) > 0 && !excepted:
			t.Errorf("%s %s", name, strings.Join(found, ", "))
		case len(found) == 0 && excepted:
			t.Errorf("%s is small and needs no exception", name)
		}
	}
	for name, reason := range notSmall {
		if all[name] == "" || reason == "" {
			t.Errorf("the exception %s is of no statement, or has no reason", name)
		}
	}
}

// Every write of a turn names the term of its lease, and the one that must not does not.
func TestWritesOfATurnAreFenced(t *testing.T) {
	t.Parallel()
	for name, statement := range statementsOf(t, "turn") {
		isFenced := strings.Contains(statement, "lease_owner = @owner::text") && strings.Contains(statement, "lease_term = @term")
		if writes.MatchString(statement) && isFenced == (name == "TurnAbandon") {
			t.Errorf("%s is fenced: %t", name, isFenced)
		}
	}
}

// The test itself finds what it is there for.
func TestFaultsOfStatementsAreFound(t *testing.T) {
	t.Parallel()
	for statement, want := range map[string]int{
		"UPDATE a SET b = now() WHERE c = 1":                                                            0,
		"INSERT INTO a (b, c) VALUES (1, now()) ON CONFLICT (b) DO UPDATE SET c = EXCLUDED.c":           0,
		"INSERT INTO a (b, c) VALUES (1, now()) ON CONFLICT (b) DO UPDATE SET c = now()":                1,
		"UPDATE a SET b = CASE WHEN c THEN now() END":                                                   1,
		"UPDATE a SET b = coalesce(b, now())":                                                           1,
		"SELECT coalesce(b, now()) FROM a":                                                              0,
		"UPDATE a SET b = CASE WHEN c THEN jsonb_build_object('d', 1) END":                              1,
		"UPDATE a SET b = n.list::bigint[] FROM n":                                                      1,
		"UPDATE a SET b = @list::bigint[]":                                                              0,
		"UPDATE a SET b = jsonb_set(b, '{d}', jsonb_build_object('d', 1))":                              0,
		"SELECT b FROM a FOR UPDATE":                                                                    0,
		"WITH x AS (SELECT b FROM a FOR UPDATE) SELECT b FROM x":                                        1,
		"WITH x AS (UPDATE a SET b = 1 RETURNING b) SELECT b FROM x":                                    1,
		"WITH x AS MATERIALIZED (SELECT 1), y AS (DELETE FROM a RETURNING b) UPDATE c SET d = 1 FROM y": 2,
		"WITH RECURSIVE x AS (SELECT 1) SELECT b FROM x":                                                1,
		"WITH RECURSIVE x AS (SELECT 1 FROM a WHERE a.session_key = @session_key) SELECT b FROM x":      0,
		"SELECT 1" + strings.Repeat("\n    , 1", mostLines):                                             1,
	} {
		if got := faults(statement); len(got) != want {
			t.Errorf("%s: %q, want %d", statement, got, want)
		}
	}
}
