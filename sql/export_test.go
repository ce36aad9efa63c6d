package sql

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// OpenTraced is Open, with a tracer that sees every statement before it is sent.
func OpenTraced(ctx context.Context, o Options, tracer pgx.QueryTracer) (*Store, error) {
	s, err := Open(ctx, o)
	if err != nil {
		return nil, err
	}
	config := s.pool.Config()
	config.ConnConfig.Tracer = tracer
	s.pool.Close()
	s.pool, err = pgxpool.NewWithConfig(ctx, config)
	return s, err
}
