package sqltest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"

	"github.com/jackc/pgx/v5"

	"ebb/sql"
	"ebb/sql/citus"
)

// ClusterVariable names the coordinator of a Citus cluster, by a superuser's address of a database with the extension. The
// coordinator and the workers are registered there, and take the same user. Connections of the nodes to each other need no password.
const ClusterVariable = "EBB_TEST_CITUS_URL"

// OnCluster reports whether tests run on a Citus cluster.
func OnCluster() bool { return os.Getenv(ClusterVariable) != "" }

// joinCluster reads the nodes of the cluster.
func joinCluster(ctx context.Context, address string) error {
	at, err := url.Parse(address)
	if err != nil || at.Scheme == "" {
		return fmt.Errorf("%s must be a URL", ClusterVariable)
	}
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	rows, err := conn.Query(ctx, "SELECT nodename, nodeport FROM pg_dist_node WHERE groupid <> 0 AND noderole = 'primary' ORDER BY groupid")
	if err != nil {
		return err
	}
	server.url, server.nodes = address, []node{newNode(address)}
	var host string
	var port int
	_, err = pgx.ForEachRow(rows, []any{&host, &port}, func() error {
		u := *at
		u.Host = host + ":" + strconv.Itoa(port)
		server.nodes = append(server.nodes, newNode(u.String()))
		return nil
	})
	if err == nil && len(server.nodes) == 1 {
		err = citus.ErrNoWorkers
	}
	return err
}

// distribute makes the database of all nodes one of a cluster, and closes it to connections. Citus keeps what it knows of nodes and
// shards in the tables of the database. So copies of it on all nodes are a distributed database, too.
func distribute(ctx context.Context, name string) error {
	var here *pgx.Conn
	for i, n := range server.nodes {
		conn, err := pgx.Connect(ctx, onDatabase(n.url, name))
		if err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, "CREATE EXTENSION citus"); err != nil {
			return errors.Join(err, conn.Close(ctx))
		}
		if i == 0 {
			here = conn
		} else if err := conn.Close(ctx); err != nil {
			return err
		}
	}
	defer func() { _ = here.Close(context.WithoutCancel(ctx)) }()
	for i, n := range server.nodes {
		u, err := url.Parse(n.url)
		if err != nil {
			return err
		}
		port, err := strconv.Atoi(u.Port())
		if err != nil {
			return fmt.Errorf("the port of a node: %w", err)
		}
		statement := "SELECT citus_add_node($1, $2)"
		if i == 0 {
			statement = "SELECT citus_set_coordinator_host($1, $2)"
		}
		if _, err := here.Exec(ctx, statement, u.Hostname(), port); err != nil {
			return err
		}
	}
	if err := here.Close(ctx); err != nil {
		return err
	}
	if _, err := sql.Distribute(ctx, onDatabase(server.url, name), func(citus.Place) {}); err != nil {
		return err
	}
	// The extension's daemon is connected, and a template must have no connections.
	for _, statement := range []string{
		"ALTER DATABASE " + name + " WITH ALLOW_CONNECTIONS false",
		"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '" + name + "'",
	} {
		if err := order(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
