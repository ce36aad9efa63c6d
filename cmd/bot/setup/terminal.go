package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// Terminal is an [Asker] on a terminal. It reads without the terminal's own echo from Open to Close: a secret that is pasted before its
// question is not shown either.
type Terminal struct {
	fd    int
	old   *term.State
	lines *term.Terminal
}

// Open returns nil if in is no terminal.
func Open(in *os.File, out io.Writer) (*Terminal, error) {
	fd := int(in.Fd())
	if !term.IsTerminal(fd) {
		return nil, nil //nolint:nilnil // no terminal is no error
	}
	old, err := term.MakeRaw(fd)
	if err != nil {
		return nil, fmt.Errorf("reading from the terminal: %w", err)
	}
	lines := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{in, out}, "")
	if width, height, err := term.GetSize(fd); err == nil && width > 0 {
		_ = lines.SetSize(width, height) // lines that are wrapped elsewhere still work
	}
	return &Terminal{fd, old, lines}, nil
}

// Close gives the terminal its settings back.
func (t *Terminal) Close() error { return term.Restore(t.fd, t.old) }

// ErrEnded is returned when the person ended the dialog, by Ctrl-C or Ctrl-D.
var ErrEnded = errors.New("the dialog was ended, and nothing was written")

// Ask implements [Asker].
func (t *Terminal) Ask(ctx context.Context, question string, hidden bool) (string, error) {
	type line struct {
		text string
		err  error
	}
	read := make(chan line, 1)
	go func() { // a read from a terminal has no end by a context
		var l line
		if hidden {
			l.text, l.err = t.lines.ReadPassword(question)
		} else {
			t.lines.SetPrompt(question)
			l.text, l.err = t.lines.ReadLine()
		}
		read <- l
	}()
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case l := <-read:
		if errors.Is(l.err, io.EOF) {
			return "", ErrEnded
		}
		return l.text, l.err
	}
}

// Write implements io.Writer for other lines of the dialog.
func (t *Terminal) Write(p []byte) (int, error) { return t.lines.Write(p) }
