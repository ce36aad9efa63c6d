package sessions

import "errors"

// IsFinal reports whether a write that failed surely changed nothing, and fails again.
func IsFinal(err error) bool {
	return errors.Is(err, ErrLeaseLost) || errors.Is(err, ErrConflict) || errors.Is(err, ErrRefused)
}
