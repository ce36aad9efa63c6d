package main

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

// child is one gateway process: the bot, run as `serve` on a config of its own.
type child struct {
	name string
	cmd  *exec.Cmd
	log  *os.File      // our end of its log
	told atomic.Bool   // it was made to end
	done chan struct{} // closed when it has ended and its log is read
	err  error         // how it ended; read after done
}

// childEnv is what a gateway process gets of our environment: nothing that could change its config.
var childEnv = []string{"PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "GOCOVERDIR"}

// logReader takes in a process's log until it ends. It never stops reading early: a full pipe would stop the process.
type logReader interface {
	read(process string, r io.Reader) error
}

// startChild starts a gateway whose log goes into book.
func startChild(name, program, config string, book logReader) (*child, error) {
	in, out, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making the log pipe of gateway %s: %w", name, err)
	}
	cmd := exec.Command(program, "serve", "--config", config) //nolint:noctx // it is ended by signals, which are the story
	for _, v := range childEnv {
		if value, ok := os.LookupEnv(v); ok {
			cmd.Env = append(cmd.Env, v+"="+value)
		}
	}
	cmd.Stderr = out
	// Of a group of its own: a Ctrl-C at the terminal is for the demo, which ends the gateways in its own order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithDemo(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting gateway %s: %w", name, err), in.Close(), out.Close())
	}
	c := &child{name: name, cmd: cmd, log: in, done: make(chan struct{})}
	_ = out.Close() // the process has its own
	go func() {
		defer close(c.done)
		readErr := book.read(name, in)
		c.err = errors.Join(cmd.Wait(), readErr, in.Close())
	}()
	return c, nil
}

// pid is the process id.
func (c *child) pid() int { return c.cmd.Process.Pid }

// alive reports whether the process runs.
func (c *child) alive() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// terminate asks for a clean stop; ended waits for it.
func (c *child) terminate() error {
	c.told.Store(true)
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending SIGTERM to gateway %s: %w", c.name, err)
	}
	return nil
}

// kill ends the process at once, as the kernel or a power cut would, and waits until it is gone.
func (c *child) kill() error {
	c.told.Store(true)
	if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing gateway %s: %w", c.name, err)
	}
	<-c.done
	return nil
}

// ended waits until the process has ended, and returns an error unless it did so with exit code 0.
func (c *child) ended(ctx context.Context) error {
	select {
	case <-c.done:
	case <-ctx.Done():
		return fmt.Errorf("waiting for gateway %s to end: %w", c.name, context.Cause(ctx))
	}
	if c.err != nil {
		return fmt.Errorf("gateway %s ended: %w, want exit code 0", c.name, c.err)
	}
	return nil
}

// watch calls lost when the process ends without having been told to: nothing that is waited for will come then.
func (c *child) watch(lost func(error)) {
	<-c.done
	if !c.told.Load() {
		lost(c.loss())
	}
}

// loss is the error of a process that has ended.
func (c *child) loss() error {
	if c.err == nil {
		return fmt.Errorf("gateway %s ended by itself with exit code 0", c.name)
	}
	return fmt.Errorf("gateway %s ended by itself: %w", c.name, c.err)
}

// stopChildren ends all gateways that still run: cleanly, and within the time by force.
func stopChildren(ctx context.Context, children []*child, within time.Duration) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer stop()
	var errs []error
	var running []*child
	for _, c := range children {
		if c.alive() {
			running = append(running, c)
			errs = append(errs, c.terminate())
		}
	}
	for _, c := range running {
		select {
		case <-c.done:
			errs = append(errs, c.ended(ctx))
		case <-ctx.Done():
			errs = append(errs, fmt.Errorf("gateway %s did not stop within %s and was killed", c.name, within), c.kill())
		}
	}
	return errors.Join(errs...)
}
