package sql_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"ebb/sql"
	"ebb/sql/citus"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// Each table of the schema has a place in a cluster, so that a new one is a decision.
func TestEachTableHasAPlace(t *testing.T) {
	t.Parallel()
	ofSession := sessionTables(t)
	names := storetest.Collect(t, sqltest.New(t), `SELECT c.relname::text FROM pg_class c
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' ORDER BY 1`, pgx.RowTo[string])
	for _, name := range names {
		if _, err := citus.PlaceOf(name, slices.Contains(ofSession, name)); err != nil {
			t.Error(err)
		}
	}
	if p, err := citus.PlaceOf("replicas", false); err != nil || p.Kind != citus.Local {
		t.Errorf("heartbeats are %s (%v): they would stop with any node", p.Kind, err)
	}
	if _, err := citus.PlaceOf("unknown", false); err == nil {
		t.Error("an unknown table has a place")
	}
}

// An installation is distributed once. One server refuses, with the next step.
func TestInstallationIsDistributed(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	s, err := sql.Distribution(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if s.Distributed() != sqltest.OnCluster() || s.Cluster != sqltest.OnCluster() {
		t.Errorf("on a cluster: %t; the state is %+v", sqltest.OnCluster(), s)
	}
	var moved []citus.Place
	_, err = sql.Distribute(t.Context(), url, func(p citus.Place) { moved = append(moved, p) })
	if len(moved) != 0 {
		t.Errorf("moved again: %v", moved)
	}
	if !sqltest.OnCluster() {
		if !errors.Is(err, citus.ErrNoExtension) || len(s.Missing) != 0 && s.Missing[0].Table != "dingtalk_sessions" {
			t.Errorf("got %v; to move: %v", err, s.Missing)
		}
		return
	}
	if err != nil || len(s.Missing) != 0 {
		t.Errorf("got %v; left: %v", err, s.Missing)
	}
	// A table of a newer release is distributed by the migration that makes it.
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if _, err := conn.Exec(t.Context(), `CREATE TABLE newer (session_key text NOT NULL, id bigint GENERATED ALWAYS AS IDENTITY, PRIMARY KEY (session_key, id));
		INSERT INTO newer (session_key) VALUES ('a'), ('b')`); err != nil {
		t.Fatal(err)
	}
	if s, err = sql.Distribution(t.Context(), url); err != nil || len(s.Missing) != 1 || s.Missing[0].Table != "newer" {
		t.Errorf("left: %v, %v", s.Missing, err)
	}
	if err := citus.Complete(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	// A table that an earlier release had on each node goes back to the coordinator, with its rows.
	if _, err := conn.Exec(t.Context(), "INSERT INTO replicas (id, heartbeat_at) VALUES ('a', now())"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "SELECT create_reference_table('replicas')"); err != nil {
		t.Fatal(err)
	}
	moved = nil
	if _, err = sql.Distribute(t.Context(), url, func(p citus.Place) { moved = append(moved, p) }); err != nil ||
		len(moved) != 1 || moved[0] != (citus.Place{Table: "replicas", Kind: citus.Local}) {
		t.Errorf("moved %v, %v", moved, err)
	}
	var beats int
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM replicas").Scan(&beats); err != nil || beats != 1 {
		t.Errorf("%d heartbeats are left (%v)", beats, err)
	}
	if s, err = sql.Distribution(t.Context(), url); err != nil || len(s.Missing) != 0 {
		t.Errorf("left: %v, %v", s.Missing, err)
	}
	// Ids come from the coordinator, in the order of insertion on any node.
	for _, key := range []string{"c", "a", "d", "b", "e", "a"} {
		if _, err := conn.Exec(t.Context(), "INSERT INTO newer (session_key) VALUES ($1)", key); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := conn.Query(t.Context(), "SELECT session_key FROM newer ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if want := []string{"a", "b", "c", "a", "d", "b", "e", "a"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("in the order of ids: %v, %v; want %v", got, err, want)
	}
}
