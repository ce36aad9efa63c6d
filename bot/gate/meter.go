package gate

import (
	"context"
	"sync"

	"ebb/sessions"
)

type meterKey struct{}

type meter struct {
	mu   sync.Mutex
	used sessions.Usage
}

// WithMeter adds up the usage of the calls under the returned context, failed ones included. used returns the sum so far.
func WithMeter(ctx context.Context) (_ context.Context, used func() sessions.Usage) {
	m := &meter{}
	return context.WithValue(ctx, meterKey{}, m), func() sessions.Usage {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.used
	}
}

func meterOf(ctx context.Context) *meter {
	m, _ := ctx.Value(meterKey{}).(*meter)
	return m
}

// add does nothing without a meter.
func (m *meter) add(u sessions.Usage) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used = m.used.Add(u)
}
