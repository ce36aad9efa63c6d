package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"ebb/sql/sqltest"
)

func (w *world) cmdNetwork(args []string) error {
	if args[0] == "direct" {
		return w.cmdConfig([]string{"database.url", strconv.Quote(w.url)})
	}
	if len(args) < 2 {
		return fmt.Errorf("network %s what?", args[0])
	}
	n := w.networks[args[1]]
	switch {
	case args[0] == "via" && n == nil:
		return w.newNetwork(args[1])
	case n == nil:
		return fmt.Errorf("no network %q", args[1])
	case args[0] == "cut":
		n.Sever()
	case args[0] == "mend":
		n.Mend(false)
	case args[0] == "reset":
		n.Mend(true)
	default:
		return fmt.Errorf("network %s?", args[0])
	}
	return nil
}

func (w *world) newNetwork(name string) error {
	c, err := pgx.ParseConfig(w.url)
	if err != nil {
		return err
	}
	_, address := pgconn.NetworkAddress(c.Host, c.Port)
	n, err := sqltest.NewLink(w.t.Context(), func() string { return address })
	if err != nil {
		return err
	}
	w.networks[name] = n
	through, err := n.Address(w.url)
	if err != nil {
		return err
	}
	return w.cmdConfig([]string{"database.url", strconv.Quote(through)})
}

// cmdSkew makes a database whose clock is ahead of that of this machine, for all queries of Ebb: functions of the same
// names stand before PostgreSQL's own. Defaults in migrations are bound to them as well.
func (w *world) cmdSkew(args []string) error {
	minutes, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
	defer cancel()
	w.url = sqltest.Empty(w.t)
	conn, err := pgx.Connect(ctx, w.url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	statements := "CREATE SCHEMA skew;"
	for name, kind := range map[string]string{
		"now": "STABLE", "transaction_timestamp": "STABLE", "statement_timestamp": "STABLE", "clock_timestamp": "VOLATILE",
	} {
		statements += fmt.Sprintf("CREATE FUNCTION skew.%s() RETURNS timestamptz LANGUAGE sql %s AS $$SELECT pg_catalog.%s() + interval '%d minutes'$$;",
			name, kind, name, minutes)
	}
	if _, err := conn.Exec(ctx, statements); err != nil {
		return err
	}
	u, err := url.Parse(w.url)
	if err != nil {
		return err
	}
	q := u.Query()
	q.Set("search_path", "skew,pg_catalog,public")
	u.RawQuery = q.Encode()
	w.url = u.String()
	return w.cmdConfig([]string{"database.url", strconv.Quote(w.url)})
}
