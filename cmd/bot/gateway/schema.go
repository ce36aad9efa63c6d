package gateway

import (
	"context"
	"ebb/sql"
	"errors"
	"fmt"
	"net"
	"slices"
)

// unknownHostError is why a database whose host has no address can't be asked, in one line; what the driver says of it is one
// for every way that it tried.
type unknownHostError struct{ dns *net.DNSError }

// Error names the host, which no password is in.
func (e unknownHostError) Error() string {
	return fmt.Sprintf("the host name of database.url, %q, can't be resolved: %s", e.dns.Name, e.dns.Err)
}

func (e unknownHostError) Unwrap() error { return e.dns }

// databaseFault says in its own words that the database's host has no address, and leaves every other error as it is.
func DatabaseFault(err error) error {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return unknownHostError{dns}
	}
	return err
}

// errOldSchema says what to do about a database that lacks migrations of this program.
var ErrOldSchema = errors.New("the database's schema is older than this program: run bot migrate")

// oldSchema is errOldSchema where the database at url, the server's own address, lacks a migration. Another error says why
// that could not be asked.
func OldSchema(ctx context.Context, url string) error {
	begun, err := sql.Migrated(ctx, url)
	if err != nil {
		return err
	}
	if !begun { // to ask for the state of migrations would create their table
		return ErrOldSchema
	}
	all, err := sql.Status(ctx, url)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(m sql.Migration) bool { return !m.Applied }) {
		return ErrOldSchema
	}
	return nil
}
