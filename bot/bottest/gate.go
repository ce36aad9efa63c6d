package bottest

import (
	"context"
)

// Gate has a model wait until the test lets it go on.
type Gate struct{ In, Out chan struct{} }

// NewGate makes a gate that stops each passage at both ends.
func NewGate() Gate { return Gate{make(chan struct{}), make(chan struct{})} }

// Pass announces the caller and waits to be let through, or for the end of ctx.
func (g Gate) Pass(ctx context.Context) error {
	select {
	case g.In <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-g.Out:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
