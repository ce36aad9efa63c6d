package sql

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// AddressFault says in a few words why a URL or keyword string is no PostgreSQL address, and "" of one that is. Files that the address
// names need not exist. The words have no part of the address, and nothing of the driver's error: both may hold the password.
func AddressFault(address string) string {
	c, err := pgxpool.ParseConfig(address)
	if _, file := errors.AsType[*fs.PathError](err); err == nil || file {
		// A host with an @ begins with the end of a password, since the driver splits at the first one.
		if err == nil && !strings.HasPrefix(c.ConnConfig.Host, "/") && strings.Contains(c.ConnConfig.Host, "@") {
			return unescaped("@")
		}
		return ""
	}
	scheme, rest, isURL := strings.Cut(address, "://")
	switch {
	case !isURL && strings.Contains(address, "="):
		return "keywords and values that can't be read"
	case !isURL:
		return "a text that is no address"
	case scheme != "postgres" && scheme != "postgresql":
		return "an address that does not begin with postgres://"
	}
	at := strings.LastIndex(rest, "@")
	switch host := hostRE.FindString(rest[at+1:]); {
	case strings.Contains(rest[:max(at, 0)], "/"):
		return unescaped("/")
	case escapeRE.MatchString(rest):
		return unescaped("%")
	case !portsRE.MatchString(host):
		return "a port that is not a number"
	}
	return "an address with a parameter that can't be read"
}

func unescaped(mark string) string {
	return fmt.Sprintf("an address with a %s in its user or password", mark)
}

var (
	hostRE   = regexp.MustCompile(`^[^/?]*`)
	portsRE  = regexp.MustCompile(`^((\[[^\]]*\]|[^:,]*)(:[0-9]*)?(,|$))*$`)
	escapeRE = regexp.MustCompile(`%([^0-9A-Fa-f]|.[^0-9A-Fa-f]|.?$)`)
)
