package sql

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ebb/sql/citus"
)

// Distribute moves the tables to the nodes of a Citus cluster and calls moved after each; see [citus.Distribute].
func Distribute(ctx context.Context, url string, moved func(citus.Place)) (state *citus.State, err error) {
	err = onConn(ctx, url, func(ctx context.Context, conn *pgx.Conn) error {
		state, err = citus.Distribute(ctx, conn, moved)
		return err
	})
	return state, err
}

// Distribution says whether and how the tables are distributed.
func Distribution(ctx context.Context, url string) (state *citus.State, err error) {
	err = onConn(ctx, url, func(ctx context.Context, conn *pgx.Conn) error {
		state, err = citus.Look(ctx, conn)
		return err
	})
	return state, err
}

func onConn(ctx context.Context, url string, do func(context.Context, *pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connecting to the database: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return do(ctx, conn)
}
