package localpg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"ebb/sessions/periodic"
)

// supervise restarts the server until Stop: Ebb needs it. The first end also goes to failed, for the wait at the start.
//
// The goroutine keeps its thread: where the system can end a child with its parent, it means the parent's thread.
func (p *Server) supervise(ctx context.Context, failed chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.stopped)
	for {
		err := p.run()
		select {
		case <-p.stop:
			return
		default:
		}
		select {
		case failed <- err:
		default:
		}
		zerolog.Ctx(ctx).Error().Err(err).Str("data", p.dir).Msg("Private PostgreSQL ended by itself, starting it again")
		select {
		case <-p.stop:
			return
		case <-time.After(time.Second):
		}
	}
}

// run starts the server and waits for its end. A stop that came first wins: the check and the start share a lock.
func (p *Server) run() error {
	args := []string{
		"-D", p.dir, "-k", p.sockets, "-p", portName,
		"-c", "listen_addresses=", "-c", "unix_socket_permissions=0700", "-c", "lc_messages=C", "-c", "logging_collector=off",
	}
	if !p.noSync {
		// The first change of a page after a checkpoint puts the whole page into the log.
		args = append(args, "-c", "wal_compression=on")
	}
	if p.buffers != "" {
		args = append(args, "-c", "shared_buffers="+p.buffers)
	}
	if p.noSync {
		args = append(args, "-c", "fsync=off", "-c", "full_page_writes=off", "-c", "synchronous_commit=off")
	}
	cmd := exec.Command(filepath.Join(p.bin, "postgres"), args...) //nolint:noctx // Stop ends it, gently
	p.user.prepareCommand(cmd, p.dir)
	cmd.Stderr = p.log
	// A process group of its own keeps Ctrl-C away. Ebb stops it last.
	cmd.SysProcAttr.Setpgid = true
	endWithParent(cmd.SysProcAttr)

	p.mu.Lock()
	select {
	case <-p.stop:
		p.mu.Unlock()
		return nil
	default:
	}
	err := cmd.Start()
	if err == nil {
		p.process = cmd.Process
	}
	p.mu.Unlock()
	if err != nil {
		return err
	}
	err = cmd.Wait()
	p.mu.Lock()
	p.process = nil
	p.mu.Unlock()
	if err == nil {
		err = errors.New("another process stopped it")
	}
	return err
}

// The kernel frees the lock with the process.
func lockData(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := os.ReadFile(path)
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			pid, _, _ := strings.Cut(string(holder), "\n")
			return nil, fmt.Errorf("%w (process %s holds %s); stop that one, or give this one a database.dir of its own",
				ErrDataInUse, pid, path)
		}
		return nil, err
	}
	if err := f.Truncate(0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if _, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// A killed process may have left its server on the data.
func endLeftover(ctx context.Context, dir string) error {
	pid := leftoverPID(ctx, dir)
	if pid == 0 {
		return nil
	}
	zerolog.Ctx(ctx).Warn().Int("pid", pid).Str("data", dir).Msg("Stopping a PostgreSQL that outlived its process")
	_ = syscall.Kill(pid, syscall.SIGINT) // ends open sessions, then shuts down cleanly
	defer time.AfterFunc(20*time.Second, func() { _ = syscall.Kill(pid, syscall.SIGQUIT) }).Stop()
	err := periodic.Poll(ctx, pollInterval, func() (bool, error) { return leftoverPID(ctx, dir) != pid, ctx.Err() })
	if err != nil {
		return fmt.Errorf("waiting for the server of a killed process to end: %w", err)
	}
	return nil
}

// leftoverPID is a process id, or 0. The id in the server's file may be stale and reused. So only a process that works in
// the data folder, as PostgreSQL does, counts.
func leftoverPID(ctx context.Context, dir string) int {
	content, err := os.ReadFile(filepath.Join(dir, "postmaster.pid"))
	if err != nil {
		return 0
	}
	first, _, _ := bytes.Cut(content, []byte("\n"))
	pid, err := strconv.Atoi(strings.TrimSpace(string(first)))
	if err != nil || pid <= 1 || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return 0
	}
	if _, err := os.Stat("/proc/self/cwd"); err == nil {
		cwd, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "cwd"))
		if err == nil && cwd == dir {
			return pid
		}
		return 0
	}
	command, err := exec.CommandContext(ctx, "ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	if err == nil && bytes.Contains(command, []byte(dir)) {
		return pid
	}
	return 0
}

func lastLines(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.Join(lines[max(0, len(lines)-4):], " / ")
}
