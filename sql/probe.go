package sql

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// Between is the kind of pooler between an address and the server.
type Between string

// The kinds of pooler.
const (
	Nothing           Between = "nothing"
	SessionPooler     Between = "a pooler that hands out connections by the session"
	TransactionPooler Between = "a pooler that hands out connections by the transaction"
)

// Lead is the destination of a database address.
type Lead struct {
	Between Between
	Version string // of the server, such as 15.8
	// Identity is the same for all addresses of a database.
	Identity string
}

// Trace finds the destination of a database address. It fails when the server accepts no writes.
func Trace(ctx context.Context, url string) (Lead, error) {
	lead, err := trace(ctx, url)
	if err != nil {
		return Lead{}, fmt.Errorf("asking the database who it is: %w", err)
	}
	return lead, nil
}

func trace(ctx context.Context, url string) (Lead, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return Lead{}, err
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // any pooler supports it
	var who [2]dbsqlc.ServerIdentityRow
	announced := false // a server process that answers is the one that its connection announced
	for i := range who {
		conn, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return Lead{}, err
		}
		defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
		if who[i], err = dbsqlc.New().ServerIdentity(ctx, conn); err != nil {
			return Lead{}, err
		}
		announced = announced || int64(who[i].Pid) == int64(conn.PgConn().PID())
	}
	lead := Lead{Between: Nothing, Version: who[0].Version, Identity: who[0].Identity}
	switch {
	case who[0].ReadOnly:
		return Lead{}, pg.ErrReadOnly
	case who[0].Pid == who[1].Pid: // two connections, one process
		lead.Between = TransactionPooler
	case !announced:
		lead.Between = SessionPooler
	}
	return lead, nil
}
