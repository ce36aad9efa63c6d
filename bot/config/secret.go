package config

import (
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"
)

const mask = "***"

// Secret is a string that fmt, JSON encoders and loggers print as ***, or as nothing when it is empty.
type Secret string

// Reveal returns the secret.
func (s Secret) Reveal() string { return string(s) }

// String returns ***, or nothing for an empty secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return mask
}

// Format covers every verb: with String alone, fmt's complaint about %d would print the secret.
func (s Secret) Format(w fmt.State, _ rune) { _, _ = io.WriteString(w, s.String()) }

// MarshalText is String for encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// DSN is a database URL, or keyword string, that prints with its password as ***.
type DSN string

// Reveal returns it with passwords.
func (d DSN) Reveal() string { return string(d) }

var (
	// dsnKeyword matches password=... and sslpassword=..., in a URL's query and in a keyword string.
	dsnKeyword = regexp.MustCompile(`(?i)(password\s*=\s*)('(?:[^'\\]|\\.)*'|(?:\\.|[^&\s\\])+)`)
	// dsnUserinfo matches user and password up to the last @, for text that url.Parse refuses, such as a password with
	// an unescaped slash.
	dsnUserinfo = regexp.MustCompile(`^([^:/]+://[^:@/]*):.*@`)
)

// String returns it with every password as ***.
func (d DSN) String() string {
	s := string(d)
	if u, err := url.Parse(s); err == nil && u.User != nil {
		if _, has := u.User.Password(); has {
			// URL.String would escape asterisks, so a plain word is replaced afterwards.
			const word = "ebb-password"
			u.User = url.UserPassword(u.User.Username(), word)
			s = strings.Replace(u.String(), ":"+word+"@", ":"+mask+"@", 1)
		}
	} else {
		s = dsnUserinfo.ReplaceAllString(s, "$1:"+mask+"@")
	}
	return dsnKeyword.ReplaceAllString(s, "${1}"+mask)
}

// Format covers every verb, as Secret's does.
func (d DSN) Format(w fmt.State, _ rune) { _, _ = io.WriteString(w, d.String()) }

// MarshalText is String for encoders.
func (d DSN) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Endpoint is an HTTP address that prints with its password and its query's values as ***: some providers take a key
// there.
type Endpoint string

// Reveal returns it with its secrets.
func (e Endpoint) Reveal() string { return string(e) }

// String returns it with every possible secret as ***.
func (e Endpoint) String() string {
	address, query, has := strings.Cut(string(e), "?")
	address = DSN(address).String()
	if !has {
		return address
	}
	params := strings.Split(query, "&")
	for i, p := range params {
		if name, value, found := strings.Cut(p, "="); found && value != "" {
			params[i] = name + "=" + mask
		} else if p != "" {
			params[i] = mask
		}
	}
	return address + "?" + strings.Join(params, "&")
}

// Format covers every verb, as Secret's does.
func (e Endpoint) Format(w fmt.State, _ rune) { _, _ = io.WriteString(w, e.String()) }

// MarshalText is String for encoders.
func (e Endpoint) MarshalText() ([]byte, error) { return []byte(e.String()), nil }
