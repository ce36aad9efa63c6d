package sql

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// ValidAddress reports whether a URL, or keyword string, can be read as the address of a PostgreSQL. Why not is not said: the
// driver's words may hold the password. Files that the address names need not be there yet.
func ValidAddress(address string) bool {
	c, err := pgxpool.ParseConfig(address)
	if err != nil {
		_, file := errors.AsType[*fs.PathError](err)
		return file
	}
	// A host with an @ begins with the end of a password: the driver takes all after the first one for the host.
	return strings.HasPrefix(c.ConnConfig.Host, "/") || !strings.Contains(c.ConnConfig.Host, "@")
}
