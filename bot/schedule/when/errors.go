package when

import (
	"errors"
	"fmt"
)

// Errors of [Parse], as the Reason of an [Error].
var (
	ErrUnknown     = errors.New("no time is readable")
	ErrPast        = errors.New("the time is past")
	ErrSoon        = errors.New("the time is less than a second ahead")
	ErrFar         = errors.New("the time is more than five years ahead")
	ErrUnsupported = errors.New("such a repetition is not possible")
)

// Error is a failure of [Parse].
type Error struct {
	Reason error // one of the errors above
	At     int   // the byte of the text where the part begins that has no sense
	Part   bool  // the words there are of a time, and have no sense
}

func (e *Error) Error() string { return fmt.Sprintf("read a time at byte %d: %v", e.At, e.Reason) }

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Reason }
