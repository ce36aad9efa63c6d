package sqltest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"ebb/sql/localpg"
)

// The data of a server that was stopped after it got the template is kept on disk, in the folder of the user's caches. Each test process copies
// it: a copy takes a tenth of the time that initdb and the schema take. Its name has all that it depends on.
const (
	cachePrefix = "sqltest-3-" // another number where the data changes for another reason than the schema
	cacheKept   = 7 * 24 * time.Hour
)

// copyData makes the data of a server with the template in dir. Without a folder for caches it makes none, and the server starts from nothing.
func copyData(ctx context.Context, dir string) error {
	home, err := os.UserCacheDir()
	if err != nil {
		return nil //nolint:nilerr // a user without a home
	}
	home = filepath.Join(home, "ebb")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return fmt.Errorf("making the folder of caches: %w", err)
	}
	version, err := localpg.Version(ctx)
	if err != nil {
		return err
	}
	sum, err := hashSchema()
	if err != nil {
		return err
	}
	kept := filepath.Join(home, cachePrefix+version+"-"+sum)
	// The first process makes the data, and the others wait. The kernel frees the lock of a killed one.
	lock, err := os.OpenFile(filepath.Join(home, "sqltest.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("locking the kept data: %w", err)
	}
	defer func() { _ = lock.Close() }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("locking the kept data: %w", err)
	}
	if _, err := os.Stat(kept); errors.Is(err, os.ErrNotExist) {
		if err := keepData(ctx, kept); err != nil {
			return err
		}
	}
	now := time.Now()
	_ = os.Chtimes(kept, now, now) // its use
	sweepKept(home, now)
	// The lock is held meanwhile, so that no process sweeps the data.
	if out, err := exec.CommandContext(ctx, "cp", "-Rp", kept, dir).CombinedOutput(); err != nil { //nolint:gosec // our own paths
		return fmt.Errorf("copying the kept data: %w: %s", err, out)
	}
	return nil
}

// keepData makes the data of a server with the template, and keeps it when it is complete.
func keepData(ctx context.Context, kept string) error {
	dir, err := OpenDir(prefix)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	made := filepath.Join(dir, "pg")
	s, err := localpg.Start(ctx, localpg.Options{Dir: made, NoSync: true})
	if err != nil {
		return err
	}
	server.nodes = []node{newNode(s.URL())}
	_, err = makeTemplate(ctx, s.URL())
	for _, setting := range []string{
		"deadlock_timeout = '100ms'", // erasures at the same time meet in deadlocks, which the store repeats: the server looks for one after a second
		"max_connections = 300",      // each replica of the scenarios that run at a time opens up to 17
	} {
		if err == nil {
			err = order(ctx, "ALTER SYSTEM SET "+setting)
		}
	}
	for _, n := range server.nodes {
		n.close(ctx)
	}
	if err := errors.Join(err, s.Stop(ctx)); err != nil {
		return err
	}
	fresh := kept + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "cp", "-Rp", made, fresh).CombinedOutput(); err != nil { //nolint:gosec // our own paths
		return fmt.Errorf("keeping the data: %w: %s", err, out)
	}
	return os.Rename(fresh, kept)
}

// sweepKept removes data of other schemas and versions after a week without use.
func sweepKept(home string, now time.Time) {
	entries, _ := os.ReadDir(home)
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && strings.HasPrefix(e.Name(), cachePrefix[:len("sqltest-")]) && now.Sub(info.ModTime()) > cacheKept {
			_ = os.RemoveAll(filepath.Join(home, e.Name()))
		}
	}
}
