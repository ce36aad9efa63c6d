package strict

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Expand replaces the variables of a value and records the missing ones at its path. A default from the code has its field's path, so
// that errors explain a missing key like a present one.
func (s *Source) Expand(path, value string) string {
	delete(s.unset, path)
	out, unset, err := expandEnv(value, s.getenv)
	if err != nil {
		s.Fail(path, "%v", err)
	}
	if len(unset) > 0 {
		s.unset[path] = unset
	}
	return out
}

// A wrong path is not read whole.
const maxSecret = 64 << 10

// readSecret drops line breaks at the end. Errors never show the content.
func readSecret(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("reading a secret: %w", err)
	}
	defer func() { _ = f.Close() }()
	content, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	text := strings.TrimRight(string(content), "\r\n")
	switch {
	case err != nil:
		return "", fmt.Errorf("reading a secret: %w", err)
	case len(content) > maxSecret:
		return "", fmt.Errorf("reading a secret: %s has more than %d bytes", path, maxSecret)
	case text == "" || !utf8.ValidString(text):
		return "", fmt.Errorf("reading a secret: %s is empty, or no text", path)
	}
	return text, nil
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expandEnv replaces ${NAME}. ${NAME:-default} has a default for unset or empty variables, ${file:PATH} is a file's
// content, and $${ stands for ${ itself. The result is not expanded again. unset lists empty variables without a
// default. Errors never show the value, which may be a secret.
func expandEnv(value string, getenv func(string) string) (out string, unset []string, err error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(value, "${")
		if !found {
			b.WriteString(value)
			return b.String(), unset, nil
		}
		if cut, ok := strings.CutSuffix(before, "$"); ok {
			b.WriteString(cut + "${")
			value = rest
			continue
		}
		ref, after, closed := strings.Cut(rest, "}")
		if !closed {
			return "", nil, errors.New("got ${ without }, want ${NAME} or ${NAME:-default}; write $${ for the two characters themselves")
		}
		if path, isFile := strings.CutPrefix(ref, "file:"); isFile {
			content, err := readSecret(path)
			if err != nil {
				return "", nil, err
			}
			b.WriteString(before + content)
			value = after
			continue
		}
		name, fallback, hasDefault := strings.Cut(ref, ":-")
		if !envName.MatchString(name) {
			return "", nil, errors.New("got ${...} without a valid variable name, want ${NAME} or ${NAME:-default}; write $${ for the two characters themselves")
		}
		got := getenv(name)
		switch {
		case got == "" && hasDefault:
			got = fallback
		case got == "":
			unset = append(unset, name)
		}
		b.WriteString(before + got)
		value = after
	}
}
