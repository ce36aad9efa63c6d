package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"ebb/sql"
	"ebb/sql/localpg"
)

// MakeTempDir makes a folder that a database server of another user can enter. The server's own folder in there is
// closed.
func MakeTempDir(prefix string) (string, error) {
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return "", fmt.Errorf("making a folder: %w", err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // secrets in it have modes of their own
		return dir, fmt.Errorf("opening the folder: %w", err)
	}
	return dir, nil
}

// StartServer starts PostgreSQL with Ebb's schema in a folder. noSync is for data that no crash needs to spare. If
// only its migration failed, the server is not nil.
func StartServer(ctx context.Context, dir string, noSync bool) (*localpg.Server, error) {
	server, err := localpg.Start(ctx, localpg.Options{Dir: filepath.Join(dir, "postgres"), NoSync: noSync})
	if err != nil {
		return nil, err
	}
	_, err = sql.Migrate(ctx, server.URL())
	return server, err
}

// The stopped server's data is deleted anyway.
const stopServerLimit = 15 * time.Second

// RemoveServer stops a server and deletes its folder. The server may be nil, and the folder empty.
func RemoveServer(ctx context.Context, server *localpg.Server, dir string) error {
	var err error
	if server != nil {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopServerLimit)
		defer cancel()
		err = server.Discard(stop) // its data is elsewhere where its account can't enter dir
	}
	if dir != "" {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}
