package rig

import (
	"errors"
	"testing"
)

func TestUsageErrorIsUnwrapped(t *testing.T) {
	t.Parallel()
	if cause := errors.New("cause"); !errors.Is(UsageError(cause), cause) {
		t.Error("the cause is hidden")
	}
}
