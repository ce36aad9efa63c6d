package document

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sync/semaphore"
)

// ChildVariable makes the program a parser of its standard input. See [RunChild].
const ChildVariable = "EBB_PARSE_DOCUMENT"

// Sandbox reads files in child processes.
type Sandbox struct {
	program string
	limits  Limits
	timeout time.Duration
	slots   *semaphore.Weighted
}

const (
	wallTime = 90 * time.Second
	// parallel children at once.
	parallel = 2
)

// NewSandbox runs program, which must call [RunChild] when [ChildVariable] is set.
func NewSandbox(program string) *Sandbox {
	return &Sandbox{program: program, limits: DefaultLimits, timeout: wallTime, slots: semaphore.NewWeighted(parallel)}
}

// Read is [Read] of a file in a child process. It waits for one of few places.
func (s *Sandbox) Read(ctx context.Context, file *os.File, page func(Page) error) (Content, error) {
	if err := s.slots.Acquire(ctx, 1); err != nil {
		return Content{}, err
	}
	defer s.slots.Release(1)
	temp, err := os.MkdirTemp("", "ebb-document-")
	if err != nil {
		return Content{}, err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	within, stop := context.WithTimeout(ctx, s.timeout)
	defer stop()
	cmd := exec.CommandContext(within, s.program) //nolint:gosec // this program
	cmd.Env = []string{ChildVariable + "=1", "TMPDIR=" + temp}
	cmd.Dir = temp
	cmd.Stdin = file
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return Content{}, err
	}
	if err := cmd.Start(); err != nil {
		return Content{}, err
	}
	end, readErr := s.receive(out, page)
	if readErr != nil {
		stop() // the child has no reader any more
	}
	waitErr := cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return Content{}, context.Cause(ctx)
	case end != nil && end.Fault != nil:
		return Content{}, &Fault{Reason: end.Fault.Reason, Kind: end.Fault.Kind, Err: errors.New(end.Fault.Text)}
	case end != nil && readErr == nil:
		return Content{Kind: end.Kind, Pages: min(max(end.Pages, 0), s.limits.Pages), Cut: end.Cut, Picture: end.Picture}, nil
	case readErr != nil && !errors.Is(readErr, errChild):
		return Content{}, readErr
	}
	return Content{}, &Fault{Reason: TooComplex, Err: fmt.Errorf("the parser ended: %w", errors.Join(waitErr, within.Err()))}
}

// record is a line of a child: a page, or the end.
type record struct {
	Page *Page      `json:"page,omitempty"`
	End  *endRecord `json:"end,omitempty"`
}

type endRecord struct {
	Kind    Kind         `json:"kind,omitempty"`
	Pages   int          `json:"pages,omitempty"`
	Cut     bool         `json:"cut,omitempty"`
	Picture *Scaled      `json:"picture,omitempty"`
	Fault   *faultRecord `json:"fault,omitempty"`
}

type faultRecord struct {
	Reason Reason `json:"reason"`
	Kind   Kind   `json:"kind"`
	Text   string `json:"text"`
}

var errChild = errors.New("the child's output ended early")

// receive trusts a child with no more than the limits: a parser that was taken over writes what it likes.
func (s *Sandbox) receive(out io.Reader, page func(Page) error) (*endRecord, error) {
	d := json.NewDecoder(io.LimitReader(out, 2*int64(s.limits.Text)+int64(s.limits.Pages)*200))
	for pages := 0; ; pages++ {
		var r record
		if err := d.Decode(&r); err != nil {
			return nil, errors.Join(errChild, err)
		}
		switch {
		case r.End != nil && !r.End.Picture.isSound():
			return nil, errChild
		case r.End != nil:
			return r.End, nil
		case r.Page == nil, pages >= s.limits.Pages:
			return nil, errChild
		}
		r.Page.Text, r.Page.Title = clean(r.Page.Text), head(clean(r.Page.Title), maxTitle)
		if err := page(*r.Page); err != nil {
			return nil, err
		}
	}
}

const (
	maxTitle     = 200
	maxFaultText = 300
)

// RunChild parses the standard input and writes the pages to the standard output, within the limits of a child. It returns the exit code.
func RunChild() int {
	if err := confine(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	info, err := os.Stdin.Stat()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	out := json.NewEncoder(os.Stdout)
	c, err := Read(os.Stdin, info.Size(), DefaultLimits, func(p Page) error { return out.Encode(record{Page: &p}) })
	end := endRecord{Kind: c.Kind, Pages: c.Pages, Cut: c.Cut, Picture: c.Picture}
	if err != nil {
		fault, ok := errors.AsType[*Fault](err)
		if !ok {
			fault = &Fault{Reason: Broken, Err: err}
		}
		text := &bytes.Buffer{}
		if fault.Err != nil {
			text.WriteString(head(clean(fault.Err.Error()), maxFaultText))
		}
		end.Fault = &faultRecord{Reason: fault.Reason, Kind: fault.Kind, Text: text.String()}
	}
	if err := out.Encode(record{End: &end}); err != nil {
		return 1
	}
	return 0
}
