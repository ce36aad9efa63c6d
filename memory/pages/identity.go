package pages

import (
	"context"
	"errors"

	"ebb/sessions"
)

// The reasons of a refused login by DingTalk.
var (
	ErrLoginCode  = errors.New("DingTalk does not know the code of the login, or it was used")
	ErrOutsider   = errors.New("the person is no member of the application's organization")
	ErrLoginSetup = errors.New("DingTalk refuses the application")
)

// Person is a person who logged in by DingTalk.
type Person struct {
	ID   sessions.UserID // staff id
	Nick string          // chosen by the person: one line of at most 100 characters
}

// Identity finds out who a person is, by a code from a page of DingTalk.
type Identity interface {
	// Address returns the page's address; state comes back with the code.
	Address(state string) string
	// Identify exchanges a code once. Its errors have no secret, and may wrap [ErrLoginCode], [ErrOutsider] or
	// [ErrLoginSetup].
	Identify(ctx context.Context, code string) (Person, error)
	// Sign returns a signature of a text by a secret of the application, the same in all its processes.
	Sign(text string) string
	// Secure reports whether the page leads back over TLS.
	Secure() bool
}
