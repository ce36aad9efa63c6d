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
	Version string // version of the server, such as 15.8
	// Identity is the same for all addresses of a database.
	Identity string
}

// Trace finds the destination of a database address. It fails when the server accepts no writes.
func Trace(ctx context.Context, url string) (Lead, error) {
	lead, err := detectPooler(ctx, url)
	if err != nil {
		return Lead{}, fmt.Errorf("asking the database who it is: %w", err)
	}
	return lead, nil
}

// Two answers alone prove nothing: another client may use the process that answered last.
const asks = 20

// detectPooler distinguishes a server from a pooler by process ids. A connection that meets its announced process has nothing between. Two
// connections that meet the same process, or one that meets several, have a pooler in transaction mode.
func detectPooler(ctx context.Context, url string) (Lead, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return Lead{}, err
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // any pooler supports it
	var conns [2]*pgx.Conn
	for i := range conns {
		if conns[i], err = pgx.ConnectConfig(ctx, config); err != nil {
			return Lead{}, err
		}
		defer func() { _ = conns[i].Close(context.WithoutCancel(ctx)) }()
	}
	var lead Lead
	var pids [2]int
	for n := range asks {
		i := (n + 1) / 2 % 2 // each connection asks twice in a row: a pooler may use its processes in turn
		who, err := dbsqlc.New().ServerIdentity(ctx, conns[i])
		if err != nil {
			return Lead{}, err
		}
		if who.ReadOnly {
			return Lead{}, pg.ErrReadOnly
		}
		if err := checkEncoding(who.Encoding); err != nil {
			return Lead{}, err
		}
		lead = Lead{Between: SessionPooler, Version: who.Version, Identity: who.Identity}
		switch {
		case who.Pid == int(conns[i].PgConn().PID()): // the process that the connection announced
			lead.Between = Nothing
			return lead, nil
		case who.Pid == pids[1-i], pids[i] != 0 && who.Pid != pids[i]: // not a process for each connection
			lead.Between = TransactionPooler
			return lead, nil
		}
		pids[i] = who.Pid
	}
	return lead, nil
}

// EncodingError reports a database whose encoding is not UTF8. PostgreSQL would cut its texts between the bytes of a character, compare
// words by bytes, and refuse some messages.
type EncodingError string

// Error names the way out.
func (e EncodingError) Error() string {
	return fmt.Sprintf("the database has the encoding %s, want UTF8: create one by createdb -E UTF8 -T template0", string(e))
}

func findEncoding(ctx context.Context, conn *pgx.Conn) error {
	who, err := dbsqlc.New().ServerIdentity(ctx, conn)
	if err != nil {
		return err
	}
	return checkEncoding(who.Encoding)
}

func checkEncoding(name string) error {
	if name != "UTF8" {
		return EncodingError(name)
	}
	return nil
}
