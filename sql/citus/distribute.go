package citus

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// The reasons why an installation can't be distributed.
var (
	ErrNoExtension   = errors.New("the extension citus is not in this database: name it in shared_preload_libraries, and run CREATE EXTENSION citus on each node")
	ErrNoWorkers     = errors.New("the cluster has no workers: run SELECT citus_add_node('HOST', PORT) on the coordinator for each")
	ErrNoCoordinator = errors.New("the coordinator has no address: run SELECT citus_set_coordinator_host('HOST', PORT) on it")
	ErrWorker        = errors.New("the address of the database leads to a worker: it must lead to the coordinator")
	ErrNoSchema      = errors.New("the database has no schema: run bot migrate first")
)

var (
	//go:embed orders/cluster.sql
	askCluster string
	//go:embed orders/nodes.sql
	askNodes string
	//go:embed orders/tables.sql
	askTables string
	//go:embed orders/places.sql
	askPlaces string
	//go:embed orders/distribute.sql
	distribute string
	//go:embed orders/reference.sql
	reference string
	//go:embed orders/local.sql
	local string
)

// State says how an installation is distributed.
type State struct {
	Cluster bool // the database has the extension
	Workers int
	Tables  []Place // as they are
	Missing []Place // tables that are not where they belong, in the order in which [Distribute] moves them
	Shards  int     // number for each distributed table
}

// Distributed reports whether any table of Ebb is in shards.
func (s *State) Distributed() bool { return s.Shards > 0 }

// Count is the number of tables of a kind.
func (s *State) Count(kind Kind) (n int) {
	for _, t := range s.Tables {
		if t.Kind == kind {
			n++
		}
	}
	return n
}

// Distribute moves the tables that are not where they belong, with their rows, one transaction each, and calls moved after each. An
// interrupted call is repeated. A table is locked while its rows move. The result is the state before.
func Distribute(ctx context.Context, conn *pgx.Conn, moved func(Place)) (*State, error) {
	s, err := Look(ctx, conn)
	switch {
	case err != nil:
		return nil, err
	case !s.Cluster:
		return nil, ErrNoExtension
	case len(s.Tables) == 0:
		return nil, ErrNoSchema
	}
	var coordinator, registered bool
	if err := conn.QueryRow(ctx, askNodes).Scan(&coordinator, &registered, &s.Workers); err != nil {
		return nil, fmt.Errorf("reading the nodes of the cluster: %w", err)
	}
	switch {
	case !coordinator:
		return nil, ErrWorker
	case !registered:
		return nil, ErrNoCoordinator
	case s.Workers == 0:
		return nil, ErrNoWorkers
	}
	for _, p := range s.Missing {
		if err := move(ctx, conn, p); err != nil {
			return nil, fmt.Errorf("distributing the table %s: %w", p.Table, err)
		}
		moved(p)
	}
	return s, nil
}

// Complete moves tables of newer releases when others are distributed already.
func Complete(ctx context.Context, conn *pgx.Conn) error {
	if cluster, err := onCluster(ctx, conn); err != nil || !cluster {
		return err
	}
	s, err := Look(ctx, conn)
	if err != nil || !s.Distributed() || len(s.Missing) == 0 {
		return err
	}
	_, err = Distribute(ctx, conn, func(Place) {})
	return err
}

func move(ctx context.Context, conn *pgx.Conn, p Place) error {
	switch p.Kind {
	case Reference:
		_, err := conn.Exec(ctx, reference, p.Table)
		return err
	case Local: // an earlier release had it elsewhere
		_, err := conn.Exec(ctx, local, p.Table)
		return err
	}
	with := first
	if p.Table == first {
		with = "none"
	}
	_, err := conn.Exec(ctx, distribute, p.Table, p.Key, with)
	return err
}

func onCluster(ctx context.Context, conn *pgx.Conn) (is bool, err error) {
	if err = conn.QueryRow(ctx, askCluster).Scan(&is); err != nil {
		err = fmt.Errorf("looking for a cluster: %w", err)
	}
	return is, err
}

// Look reads how the tables are distributed.
func Look(ctx context.Context, conn *pgx.Conn) (*State, error) {
	s := &State{}
	tables, err := conn.Query(ctx, askTables)
	if err != nil {
		return nil, fmt.Errorf("reading the tables: %w", err)
	}
	all, err := pgx.CollectRows(tables, pgx.RowToStructByPos[struct {
		Name      string
		OfSession bool
	}])
	if err != nil {
		return nil, fmt.Errorf("reading the tables: %w", err)
	}
	if s.Cluster, err = onCluster(ctx, conn); err != nil {
		return nil, err
	}
	there := map[string]Place{}
	if s.Cluster {
		if there, err = places(ctx, conn, s); err != nil {
			return nil, fmt.Errorf("reading how the tables are distributed: %w", err)
		}
	}
	for _, t := range all {
		want, err := PlaceOf(t.Name, t.OfSession)
		if err != nil {
			continue // not a table of Ebb
		}
		is, ok := there[t.Name]
		if !ok {
			is = Place{t.Name, Local, ""}
		}
		s.Tables = append(s.Tables, is)
		switch {
		case is == want:
		case t.Name == first:
			s.Missing = append([]Place{want}, s.Missing...)
		default:
			s.Missing = append(s.Missing, want)
		}
	}
	return s, nil
}

func places(ctx context.Context, conn *pgx.Conn, s *State) (map[string]Place, error) {
	rows, err := conn.Query(ctx, askPlaces)
	if err != nil {
		return nil, err
	}
	there := map[string]Place{}
	var name, key string
	var isReference bool
	var shards int
	_, err = pgx.ForEachRow(rows, []any{&name, &isReference, &key, &shards}, func() error {
		there[name] = Place{name, Distributed, key}
		if isReference {
			there[name] = Place{name, Reference, ""}
		} else {
			s.Shards = shards
		}
		return nil
	})
	return there, err
}
