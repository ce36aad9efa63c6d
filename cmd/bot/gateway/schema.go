package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"ebb/sql"
)

// unknownHostError is a failed DNS lookup in one line. The driver's error has one for each attempt.
type unknownHostError struct{ dns *net.DNSError }

// Error names the host, which contains no password.
func (e unknownHostError) Error() string {
	return fmt.Sprintf("the host name of database.url, %q, can't be resolved: %s", e.dns.Name, e.dns.Err)
}

// Unwrap returns the DNS error.
func (e unknownHostError) Unwrap() error { return e.dns }

// DatabaseFault puts a failed DNS lookup in one line, and returns any other error unchanged.
func DatabaseFault(err error) error {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return unknownHostError{dns}
	}
	return err
}

// OldSchema returns a sql.ErrOldSchema if the database at url, a direct address, lacks a migration. Any other error means that the
// check failed.
func OldSchema(ctx context.Context, url string) error {
	all, err := sql.Status(ctx, url)
	if err == nil && slices.ContainsFunc(all, func(m sql.Migration) bool { return !m.Applied }) {
		return sql.ErrOldSchema
	}
	return err
}
