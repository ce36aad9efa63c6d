package local_test

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"ebb/cmd/lab/local"
	"ebb/sessions"
	"ebb/sql"
)

func TestServerIsRemovedWithItsFolder(t *testing.T) {
	t.Parallel()
	dir, err := local.MakeTempDir("ebb-local-")
	if err != nil {
		t.Fatal(err)
	}
	server, err := local.StartServer(t.Context(), dir, true)
	if err != nil {
		t.Fatal(errors.Join(err, local.RemoveServer(t.Context(), server, dir)))
	}
	s, err := sql.Open(t.Context(), sql.Options{URL: server.URL(), MaxConns: 1})
	if err != nil {
		t.Error(err)
	} else {
		if _, err := s.Sessions.Session(t.Context(), "none"); !errors.Is(err, sessions.ErrNotFound) {
			t.Errorf("the schema has no empty table of sessions: %v", err)
		}
		s.Close()
	}
	if err := local.RemoveServer(t.Context(), server, dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	if err := local.RemoveServer(t.Context(), nil, ""); err != nil {
		t.Errorf("removing nothing: %v", err)
	}
}
