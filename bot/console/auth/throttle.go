package auth

import (
	"net"
	"net/http"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
)

// The tries of one address: a few at once, then one in a while. Each replica counts those that it gets.
const (
	wrongAtOnce = 5
	wrongEvery  = rate.Limit(0.1) // per second
	addresses   = 10_000
)

type throttle struct {
	every  rate.Limit
	atOnce int

	mu       sync.Mutex // from the look at the cache to its change
	limiters *lru.Cache[string, *rate.Limiter]
}

func newThrottle(every rate.Limit, atOnce int) *throttle {
	cache, err := lru.New[string, *rate.Limiter](addresses)
	if err != nil {
		panic(err) // only a size below 1
	}
	return &throttle{every: every, atOnce: atOnce, limiters: cache}
}

func (t *throttle) allow(r *http.Request) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	l, ok := t.limiters.Get(Address(r))
	if !ok {
		l = rate.NewLimiter(t.every, t.atOnce)
		t.limiters.Add(Address(r), l)
	}
	return l.Allow()
}

// Address is that of the peer. It ignores headers of proxies: anyone can write them.
func Address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
