package sql

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// Between is what stands between an address and the server.
type Between string

// What may stand there.
const (
	Nothing           Between = "nothing"
	SessionPooler     Between = "a pooler that hands out connections by the session"
	TransactionPooler Between = "a pooler that hands out connections by the transaction"
)

// Lead is where an address of a database leads.
type Lead struct {
	Between Between
	Version string // of the server, such as 15.8
	// Identity is the same for all addresses of a database.
	Identity string
}

// Trace finds out where the address of a database leads. It fails where the server takes no writes.
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
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // which any pooler bears
	var who [2]dbsqlc.ServerIdentityRow
	told := false // the first process that answers is the one that its connection was told at the beginning
	for i := range who {
		conn, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return Lead{}, err
		}
		defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
		if who[i], err = dbsqlc.New().ServerIdentity(ctx, conn); err != nil {
			return Lead{}, err
		}
		told = told || int64(who[i].Pid) == int64(conn.PgConn().PID())
	}
	lead := Lead{Between: Nothing, Version: who[0].Version, Identity: who[0].Identity}
	switch {
	case who[0].ReadOnly:
		return Lead{}, pg.ErrReadOnly
	case who[0].Pid == who[1].Pid: // two connections, one process
		lead.Between = TransactionPooler
	case !told:
		lead.Between = SessionPooler
	}
	return lead, nil
}
