package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"
)

// Process is one gateway, run as `serve` with its own config.
type Process struct {
	Name     string
	cmd      *exec.Cmd
	log      *os.File // our end of its log
	stopping atomic.Bool
	exited   chan struct{} // closed when it has ended and its log is read
	Err      error         // to be read after exited
}

// passedEnv has nothing that could change a gateway's config.
var passedEnv = []string{"PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "GOCOVERDIR"}

// logReader reads a log to its end: a full pipe would stop the process.
type logReader interface {
	ReadLog(process string, r io.Reader) error
}

// StartProcess starts a gateway whose log goes into book.
func StartProcess(name, program, config string, book logReader) (*Process, error) {
	in, out, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making the log pipe of gateway %s: %w", name, err)
	}
	cmd := exec.Command(program, "serve", "--config", config) //nolint:noctx // it is ended by signals, which are the story
	for _, v := range passedEnv {
		if value, ok := os.LookupEnv(v); ok {
			cmd.Env = append(cmd.Env, v+"="+value)
		}
	}
	cmd.Stderr = out
	// Its own group: a Ctrl-C at the terminal is for lab, which ends the gateways in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithParent(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting gateway %s: %w", name, err), in.Close(), out.Close())
	}
	c := &Process{Name: name, cmd: cmd, log: in, exited: make(chan struct{})}
	_ = out.Close() // the process has its own
	go func() {
		defer close(c.exited)
		readErr := book.ReadLog(name, in)
		c.Err = errors.Join(cmd.Wait(), readErr, in.Close())
	}()
	return c, nil
}

// PID is the process's id.
func (c *Process) PID() int { return c.cmd.Process.Pid }

// Alive reports whether the process runs.
func (c *Process) Alive() bool {
	select {
	case <-c.exited:
		return false
	default:
		return true
	}
}

// Terminate requests a clean stop, which WaitExit awaits.
func (c *Process) Terminate() error {
	c.stopping.Store(true)
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending SIGTERM to gateway %s: %w", c.Name, err)
	}
	return nil
}

// Kill ends the process at once and waits.
func (c *Process) Kill() error {
	c.stopping.Store(true)
	if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing gateway %s: %w", c.Name, err)
	}
	<-c.exited
	return nil
}

// WaitExit waits for the process. Any exit code but 0 is an error.
func (c *Process) WaitExit(ctx context.Context) error {
	select {
	case <-c.exited:
	case <-ctx.Done():
		return fmt.Errorf("waiting for gateway %s to end: %w", c.Name, context.Cause(ctx))
	}
	if c.Err != nil {
		return fmt.Errorf("gateway %s ended: %w, want exit code 0", c.Name, c.Err)
	}
	return nil
}

// ReportLoss calls lost if the process ends without a request.
func (c *Process) ReportLoss(lost func(error)) {
	<-c.exited
	if !c.stopping.Load() {
		lost(c.exitError())
	}
}

// Ending says how the process ended, such as "signal: killed".
func (c *Process) Ending() string {
	<-c.exited
	if c.Err == nil {
		return "exit code 0"
	}
	return c.Err.Error()
}

func (c *Process) exitError() error {
	if c.Err == nil {
		return fmt.Errorf("gateway %s ended by itself with exit code 0", c.Name)
	}
	return fmt.Errorf("gateway %s ended by itself: %w", c.Name, c.Err)
}

// StopProcesses ends all running gateways cleanly, and after within by force.
func StopProcesses(ctx context.Context, children []*Process, within time.Duration) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer stop()
	var errs []error
	var running []*Process
	for _, c := range children {
		if c.Alive() {
			running = append(running, c)
			errs = append(errs, c.Terminate())
		}
	}
	for _, c := range running {
		select {
		case <-c.exited:
			errs = append(errs, c.WaitExit(ctx))
		case <-ctx.Done():
			errs = append(errs, fmt.Errorf("gateway %s did not stop within %s and was killed", c.Name, within), c.Kill())
		}
	}
	return errors.Join(errs...)
}
