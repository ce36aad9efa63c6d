package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openPair returns the two ends of a terminal: a person's, and the program's.
func openPair(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { person.Close() })
	fd := int(person.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	return person, program
}

// A person sees the questions and the answers, and no secret: neither one that is typed at its question, nor one that is pasted before.
// The terminal has its settings back after the dialog.
func TestTerminalHidesSecrets(t *testing.T) {
	t.Parallel()
	hand, program := openPair(t)
	before, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := Open(program, program)
	if err != nil || terminal == nil {
		t.Fatal(terminal, err)
	}
	if _, err := hand.WriteString("dingabc\rhunter2\r"); err != nil { // both at once
		t.Fatal(err)
	}
	id, err := terminal.Ask(t.Context(), "id: ", false)
	if err != nil || id != "dingabc" {
		t.Errorf("id %q, %v", id, err)
	}
	secret, err := terminal.Ask(t.Context(), "secret: ", true)
	if err != nil || secret != "hunter2" {
		t.Errorf("secret %q, %v", secret, err)
	}
	fmt.Fprintln(terminal, "end")
	var seen strings.Builder
	for part := make([]byte, 1000); !strings.Contains(seen.String(), "end"); {
		n, err := hand.Read(part)
		if err != nil {
			t.Fatal(err)
		}
		seen.Write(part[:n])
	}
	if text := seen.String(); !strings.Contains(text, "id: dingabc") || !strings.Contains(text, "secret: ") || strings.Contains(text, "hunter2") {
		t.Errorf("the person saw %q", text)
	}
	if _, err := hand.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	if _, err := terminal.Ask(t.Context(), "more: ", false); !errors.Is(err, ErrEnded) {
		t.Errorf("Ctrl-C: %v", err)
	}
	if err := terminal.Close(); err != nil {
		t.Fatal(err)
	}
	after, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
	if err != nil || *after != *before {
		t.Errorf("the terminal is left as %+v, was %+v, %v", after, before, err)
	}
}

// A signal ends a question that waits.
func TestSignalEndsTheQuestion(t *testing.T) {
	t.Parallel()
	_, program := openPair(t)
	terminal, err := Open(program, program)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	if _, err := terminal.Ask(ctx, "id: ", false); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the question ended with %v", err)
	}
}

// A file or a pipe is no terminal.
func TestPipeIsNoTerminal(t *testing.T) {
	t.Parallel()
	in, _, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if terminal, err := Open(in, os.Stderr); terminal != nil || err != nil {
		t.Errorf("%v, %v", terminal, err)
	}
}
