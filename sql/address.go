package sql

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// ValidAddress reports whether a URL or keyword string parses as a PostgreSQL address. It gives no reason, since the
// driver's error may hold the password. Files that the address names need not exist.
func ValidAddress(address string) bool {
	c, err := pgxpool.ParseConfig(address)
	if err != nil {
		_, file := errors.AsType[*fs.PathError](err)
		return file
	}
	// A host with an @ begins with the end of a password, since the driver splits at the first one.
	return strings.HasPrefix(c.ConnConfig.Host, "/") || !strings.Contains(c.ConnConfig.Host, "@")
}
