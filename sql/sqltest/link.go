package sqltest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Link is a network to PostgreSQL that drops packets silently, as a dead switch does, or is slow.
type Link struct {
	Listener net.Listener
	server   func() string // the address of PostgreSQL as it is now
	ended    context.Context
	end      context.CancelFunc
	wg       sync.WaitGroup

	mu   sync.Mutex
	open map[net.Conn]bool
	gate chan struct{} // during a cut: closed at its end
	late time.Duration // delay of each statement
}

// NewLink opens a link on a port of its own. The function server returns the server's current address.
func NewLink(ctx context.Context, server func() string) (*Link, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("making a link to PostgreSQL: %w", err)
	}
	k := &Link{Listener: l, server: server, open: map[net.Conn]bool{}}
	k.ended, k.end = context.WithCancel(context.WithoutCancel(ctx))
	k.wg.Go(k.serve)
	return k, nil
}

// Address makes the address of a database lead through the link.
func (k *Link) Address(database string) (string, error) {
	u, err := url.Parse(database)
	if err != nil {
		return "", fmt.Errorf("reading the address of PostgreSQL: %w", err)
	}
	host, port, err := net.SplitHostPort(k.Listener.Addr().String())
	if err != nil {
		return "", fmt.Errorf("reading the address of a link: %w", err)
	}
	q := u.Query()
	q.Set("host", host)
	q.Set("port", port)
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// Close ends the link and all that runs through it.
func (k *Link) Close() {
	k.end()
	_ = k.Listener.Close()
	k.reset()
	k.wg.Wait()
}

// Cut drops all packets of both directions for a while, silently. With forget, connections are reset at the
// end; otherwise they continue.
func (k *Link) Cut(d time.Duration, forget bool) {
	if k.Sever() {
		time.AfterFunc(d, func() { k.Mend(forget) })
	}
}

// Sever begins a cut; it returns false when the link is cut already.
func (k *Link) Sever() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	whole := k.gate == nil
	if whole {
		k.gate = make(chan struct{})
	}
	return whole
}

// Mend ends a cut.
func (k *Link) Mend(forget bool) {
	if forget {
		k.reset()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.gate != nil {
		close(k.gate)
		k.gate = nil
	}
}

// Slow calls Delay for a while.
func (k *Link) Slow(by, d time.Duration) {
	k.Delay(by)
	time.AfterFunc(d, func() { k.Delay(0) })
}

// Delay adds late to each statement from now on.
func (k *Link) Delay(late time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.late = late
}

// wait returns false when the link ended meanwhile.
func (k *Link) wait(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-k.ended.Done():
		return false
	}
}

func (k *Link) reset() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for c := range k.open {
		if t, ok := c.(*net.TCPConn); ok {
			_ = t.SetLinger(0)
		}
		_ = c.Close()
	}
}

func (k *Link) serve() {
	for {
		gateway, err := k.Listener.Accept()
		if err != nil {
			return
		}
		k.wg.Go(func() { k.join(gateway) })
	}
}

func (k *Link) join(gateway net.Conn) {
	defer func() { _ = gateway.Close() }()
	if !k.pass() {
		return
	}
	var d net.Dialer
	network, address := "unix", k.server()
	if !strings.HasPrefix(address, "/") {
		network = "tcp"
	}
	server, err := d.DialContext(k.ended, network, address)
	if err != nil {
		return // PostgreSQL is away
	}
	defer func() { _ = server.Close() }()
	if !k.keep(gateway, server) {
		return
	}
	defer k.drop(gateway, server)
	var back sync.WaitGroup
	back.Go(func() { k.carry(gateway, server, false) })
	k.carry(server, gateway, true)
	back.Wait()
}

// The other side ends too, once the link is whole.
func (k *Link) carry(to io.WriteCloser, from io.Reader, statements bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if statements && n > 0 {
			k.mu.Lock()
			late := k.late
			k.mu.Unlock()
			if late > 0 && !k.wait(late) {
				err = k.ended.Err()
			}
		}
		if !k.pass() {
			_ = to.Close()
			return
		}
		if n > 0 {
			if _, writeErr := to.Write(buf[:n]); writeErr != nil {
				err = writeErr
			}
		}
		if err != nil {
			_ = to.Close()
			return
		}
	}
}

// pass waits until the link is whole; false: the link has ended.
func (k *Link) pass() bool {
	for {
		k.mu.Lock()
		gate := k.gate
		k.mu.Unlock()
		if gate == nil {
			return k.ended.Err() == nil
		}
		select {
		case <-gate:
		case <-k.ended.Done():
			return false
		}
	}
}

func (k *Link) keep(conns ...net.Conn) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ended.Err() != nil {
		return false
	}
	for _, c := range conns {
		k.open[c] = true
	}
	return true
}

func (k *Link) drop(conns ...net.Conn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range conns {
		delete(k.open, c)
	}
}

// SocketOf is the file of the socket in a private server's address, or the host and port in another one.
func SocketOf(database string) string {
	u, err := url.Parse(database)
	if err != nil {
		return ""
	}
	if !strings.HasPrefix(u.Query().Get("host"), "/") {
		return u.Host
	}
	return filepath.Join(u.Query().Get("host"), ".s.PGSQL."+u.Query().Get("port"))
}
