package console

import (
	"net"
	"net/http"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
)

// The tries of one address: a few at once, then one in a while. Each replica counts those that it gets.
const (
	wrongAtOnce = 5
	wrongEvery  = rate.Limit(0.1) // per second
	begunAtOnce = 20
	begunEvery  = rate.Limit(0.5) // per second
	addresses   = 10_000
)

// throttle bounds the tries of each address.
type throttle struct {
	limiters *lru.Cache[string, *rate.Limiter]
	every    rate.Limit
	atOnce   int
}

func newThrottle(every rate.Limit, atOnce int) *throttle {
	cache, err := lru.New[string, *rate.Limiter](addresses)
	if err != nil {
		panic(err) // only a size below 1
	}
	return &throttle{cache, every, atOnce}
}

// allows reports whether an address has a try left.
func (t *throttle) allows(r *http.Request) bool {
	l, ok := t.limiters.Get(address(r))
	return !ok || l.Tokens() >= 1
}

// count takes a try.
func (t *throttle) count(r *http.Request) {
	if _, ok := t.limiters.Get(address(r)); !ok {
		t.limiters.ContainsOrAdd(address(r), rate.NewLimiter(t.every, t.atOnce))
	}
	if l, ok := t.limiters.Get(address(r)); ok {
		l.Allow()
	}
}

// address returns the address of the peer. Headers of proxies are not trusted: anyone can write them.
func address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
