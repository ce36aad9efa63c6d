package console

import (
	"net"
	"net/http"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
)

// Wrong tokens of one address: a few at once, then one in several seconds.
const (
	wrongAtOnce = 5
	wrongEvery  = rate.Limit(0.1) // per second
	wrongKept   = 10_000          // addresses
)

// throttle bounds the wrong tokens of each address.
type throttle struct {
	addresses *lru.Cache[string, *rate.Limiter]
}

func newThrottle() *throttle {
	cache, err := lru.New[string, *rate.Limiter](wrongKept)
	if err != nil {
		panic(err) // only a size below 1
	}
	return &throttle{addresses: cache}
}

// allows reports whether an address may try a token.
func (t *throttle) allows(r *http.Request) bool {
	l, ok := t.addresses.Get(address(r))
	return !ok || l.Tokens() >= 1
}

// wrong counts a wrong token.
func (t *throttle) wrong(r *http.Request) {
	if _, ok := t.addresses.Get(address(r)); !ok {
		t.addresses.ContainsOrAdd(address(r), rate.NewLimiter(wrongEvery, wrongAtOnce))
	}
	if l, ok := t.addresses.Get(address(r)); ok {
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
