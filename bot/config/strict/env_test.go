package strict

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// vars makes a getenv from pairs of name and value.
func vars(pairs ...string) func(string) string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return m[name] }
}

func TestExpandEnv(t *testing.T) {
	t.Parallel()
	getenv := vars("A", "1", "B_2", "two", "REF", "${A}")
	for _, tt := range []struct{ in, out, unset string }{
		{"plain", "plain", ""},
		{"${A}", "1", ""},
		{"x${A}y${B_2}z", "x1ytwoz", ""},
		{"${NO}", "", "NO"},
		{"${NO}${NEITHER}", "", "NO NEITHER"},
		{"${NO:-d e f}", "d e f", ""},
		{"${NO:-}", "", ""},
		{"${A:-d}", "1", ""},
		{"${REF}", "${A}", ""}, // a value is never read as a template
		{"$${A}", "${A}", ""},
		{"$A $ {A}", "$A $ {A}", ""},
		{"p$$w", "p$$w", ""},
	} {
		out, unset, err := expandEnv(tt.in, getenv)
		if err != nil || out != tt.out || strings.Join(unset, " ") != tt.unset {
			t.Errorf("%q: got %q, unset %q, error %v; want %q, unset %q", tt.in, out, unset, err, tt.out, tt.unset)
		}
	}
	for _, bad := range []string{"${", "${A", "${}", "${1}", "${A B}", "${A-b}", "${hunter2!}"} {
		_, _, err := expandEnv(bad, getenv)
		if err == nil {
			t.Errorf("%q: no error", bad)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: the error shows the value: %v", bad, err)
		}
	}
}

// A secret may be a file, whose last line break is no part of it. It is read at each load.
func TestSecretsFromFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	text := `{"name": "${file:` + path + `}"}`
	for content, want := range map[string]string{"sk-one\n": "sk-one", "sk-two": "sk-two", "sk-${x}\r\n": "sk-${x}"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := read(text, vars())
		if err != nil || got.Name != want {
			t.Errorf("the key is %q, want %q; error %v", got.Name, want, err)
		}
	}
	for _, content := range []string{"", "\n", "secret \xff", strings.Repeat("secret", maxSecret)} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := read(text, vars())
		if err == nil || !strings.Contains(err.Error(), "f.jsonc:1:10: name: reading a secret: "+path) || strings.Contains(err.Error(), "sk-") {
			t.Errorf("a file of %d bytes: %v", len(content), err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := read(text, vars()); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("without the file: %v", err)
	}
}

// An empty variable is named by the value that needs it, and not by one that replaces its default.
func TestRequiredNamesVariables(t *testing.T) {
	t.Parallel()
	src := NewSource("f.jsonc", []byte("{}"), vars(), NoRules{})
	src.Expand("list[0].key", "${A}${B}")
	src.Required("list[0].key", "", "a key")
	if want := "f.jsonc:1:1: list[0].key: is empty, want a key: set A and B in the environment"; src.Err() == nil || src.Err().Error() != want {
		t.Errorf("got %v, want %s", src.Err(), want)
	}
	if paths := src.PathsWithUnset(); len(paths) != 1 || strings.Join(src.Unset(paths[0]), " ") != "A B" {
		t.Errorf("empty variables at %q", paths)
	}
	if src.Forget("list"); len(src.PathsWithUnset()) != 0 {
		t.Errorf("after the list was replaced: %q", src.PathsWithUnset())
	}
}
