package chat_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"ebb/bot/chat"
	"ebb/sessions"
)

// A failed download is found by its fault behind any wrapping, and its text names the fault and the cause.
func TestFileErrorNamesItsFault(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("attachment 2: %w", &chat.FileError{Fault: sessions.MediaExpired, Err: io.EOF})
	fault, ok := errors.AsType[*chat.FileError](err)
	if !ok || fault.Fault != sessions.MediaExpired || !errors.Is(err, io.EOF) || !strings.Contains(err.Error(), "expired") {
		t.Errorf("%v", err)
	}
}
