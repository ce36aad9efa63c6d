package console

import (
	"crypto/rand"
	"sync"
)

// oneTimeCode admits one administrator, where nothing else admits anyone. A request from the same machine is no proof: a proxy there
// passes on those of others.
type oneTimeCode struct {
	show func(string)

	mu    sync.Mutex
	value string
}

func newCode(show func(string)) *oneTimeCode {
	c := &oneTimeCode{show: show, value: rand.Text()}
	show(c.value)
	return c
}

// take reports whether the code is right. A right one is over, and the next one is shown.
func (c *oneTimeCode) take(code string) bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !equal(code, c.value) {
		return false
	}
	c.value = rand.Text()
	c.show(c.value)
	return true
}
