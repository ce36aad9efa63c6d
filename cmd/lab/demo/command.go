package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"ebb/cmd/lab/rig"
)

// Command is lab demo.
type Command struct {
	Once bool `help:"End after the story; exit code 1 when an expectation fails."`
}

// Run plays the story with real gateway processes. Without Once the terminal then becomes a member of the group.
func (c Command) Run(ctx context.Context, app *rig.App) (err error) {
	if err := app.CheckProgram(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer keepOnBrokenPipe()()
	work, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	out := output{app.Stdout, cancel}
	w := newShow(out, app.Getenv)
	w.printIntro()
	stopClock := w.runClock()
	w.showCaption("启动 PostgreSQL 与替身 · starting PostgreSQL and the stand-ins")
	stage, err := openStage(work, app.Program, w, lost)
	defer func() { err = errors.Join(err, stage.close(ctx)) }()
	s := &story{stage: stage}
	if err == nil {
		err = s.playAll(work)
	}
	stopClock()
	w.stopDrawing()
	if err == nil && !c.Once {
		if err = s.converseWith(work, app.Stdin, out); ctx.Err() != nil {
			return nil // a signal is a normal end
		}
	}
	switch {
	case err != nil && ctx.Err() != nil: // the story was interrupted
		return fmt.Errorf("demo: ended by %w", context.Cause(ctx))
	case err != nil && work.Err() != nil:
		err = fmt.Errorf("%w: %w", context.Cause(work), err)
	case work.Err() != nil:
		err = context.Cause(work)
	case err == nil:
		return nil
	}
	printLog(app.Stderr, stage.book.LastLines(20))
	return fmt.Errorf("demo: %w", err)
}

func printLog(out io.Writer, lines []string) {
	for _, l := range lines {
		fmt.Fprintln(out, l)
	}
}

func (s *screen) runClock() (stop func()) {
	if !s.isTerminal() {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		t := time.NewTicker(250 * time.Millisecond)
		defer t.Stop()
		for {
			select {
			case <-done:
				return
			case <-t.C:
				s.drawScene()
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// output ends the demo when its reader is gone.
type output struct {
	io.Writer

	gone context.CancelCauseFunc
}

// Write implements io.Writer.
func (o output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		o.gone(errors.New("the end of its output"))
	}
	return n, err
}

// keepOnBrokenPipe leaves a broken pipe to the error of its write. The signal would end the process, and leave PostgreSQL and the gateways
// behind. It says not which write failed: a gateway that is killed breaks connections.
func keepOnBrokenPipe() (undo func()) {
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	return func() { signal.Stop(broken) }
}
