package bot_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"ebb/bot/bottest"
)

// link is the connection of one bot to the database server. It counts the statements that pass, and breaks at a chosen
// one. The bot is cut off then, like a dead process, and the server rolls back open transactions.
type link struct {
	listener net.Listener
	dial     func() (net.Conn, error)
	broke    func() // called where the link breaks by itself
	life     context.Context
	end      context.CancelFunc
	wg       sync.WaitGroup

	mu   sync.Mutex
	open map[net.Conn]net.Conn // by client, the connection to the server
	dead bool
	seen int           // statements since watch
	cut  int           // breaks before the statement of this number; 0: never
	lost bool          // breaks where the answer to a COMMIT comes in
	hold *bottest.Gate // stands before a COMMIT, once
}

// newLink makes a link to the server at address, and returns it with the address that leads through it.
func newLink(t *testing.T, address string, broke func()) (*link, string) {
	t.Helper()
	server, err := pgx.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	network, place := pgconn.NetworkAddress(server.Host, server.Port)
	l := &link{broke: broke, open: map[net.Conn]net.Conn{}, dial: func() (net.Conn, error) { return net.Dial(network, place) }}
	l.life, l.end = context.WithCancel(context.WithoutCancel(t.Context()))
	if l.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	l.wg.Go(l.serve)
	host, port, _ := net.SplitHostPort(l.listener.Addr().String())
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" {
		return l, address + " host=" + host + " port=" + port + " sslmode=disable"
	}
	q := u.Query()
	for k, v := range map[string]string{"host": host, "port": port, "sslmode": "disable"} {
		q.Set(k, v)
	}
	u.RawQuery = q.Encode()
	return l, u.String()
}

// close ends the link and waits for its goroutines.
func (l *link) close() {
	l.sever()
	_ = l.listener.Close()
	l.wg.Wait()
}

// sever breaks the link permanently. Its port stays taken, so that no client reaches another server by the old address.
// The server ends statements that it has begun, as after the death of a process: close waits for that.
func (l *link) sever() {
	l.end()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = true
	for client, server := range l.open {
		_ = client.Close()
		hangUp(server)
	}
}

// hangUp has the server read the end of the connection. It is read to its end all the same.
func hangUp(server net.Conn) { _ = server.(interface{ CloseWrite() error }).CloseWrite() }

// watch restarts the count, and breaks before the statement of number cut, or where the answer to a COMMIT comes in.
func (l *link) watch(cut int, lost bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen, l.cut, l.lost = 0, cut, lost
}

// statements is how many passed since watch.
func (l *link) statements() int { l.mu.Lock(); defer l.mu.Unlock(); return l.seen }

// holdCommit has the next COMMIT wait at a gate.
func (l *link) holdCommit(g *bottest.Gate) { l.mu.Lock(); defer l.mu.Unlock(); l.hold = g }

func (l *link) serve() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.wg.Go(func() { l.carry(client) })
	}
}

// keep notes a connection that is to be closed when the link breaks; false where it has.
func (l *link) keep(client, server net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return false
	}
	l.open[client] = server
	return true
}

func (l *link) drop(client net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, client)
	_ = client.Close()
}

// carry takes one connection's messages to the server, and its answers back.
func (l *link) carry(client net.Conn) {
	defer l.drop(client)
	server, err := l.dial()
	if err != nil {
		return
	}
	if !l.keep(client, server) {
		_ = server.Close()
		return
	}
	defer hangUp(server)
	var committing atomic.Bool
	l.wg.Go(func() { l.back(server, client, &committing) })
	in := bufio.NewReader(client)
	for first := true; ; first = false {
		message, err := readMessage(in, first)
		if err != nil {
			return
		}
		pass, held := l.pass(message, first, &committing)
		if !pass || held != nil && l.stand(client, in, held) != nil {
			return
		}
		if _, err := server.Write(message); err != nil {
			return
		}
	}
}

// back carries answers until the server ends the connection. Those of a client that is gone are dropped.
func (l *link) back(server, client net.Conn, committing *atomic.Bool) {
	defer func() { _ = errors.Join(client.Close(), server.Close()) }()
	buf := make([]byte, 16<<10)
	for {
		n, err := server.Read(buf)
		if n > 0 && committing.Load() {
			l.broke()
			return
		}
		_, _ = client.Write(buf[:n])
		if err != nil {
			return
		}
	}
}

// readMessage reads one message of a client: a type, but for the first one, a length that counts itself, and a body.
func readMessage(r io.Reader, first bool) ([]byte, error) {
	head := make([]byte, 5)
	if first {
		head = head[:4]
	}
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(head[len(head)-4:])-4)
	_, err := io.ReadFull(r, body)
	return slices.Concat(head, body), err
}

// stand waits at a gate for as long as the client is there.
func (l *link) stand(client net.Conn, in *bufio.Reader, g *bottest.Gate) error {
	ctx, stop := context.WithCancel(l.life)
	defer stop()
	passed := make(chan error, 1)
	l.wg.Go(func() { passed <- g.Pass(ctx) })
	for {
		if err := client.SetReadDeadline(time.Now().Add(5 * time.Millisecond)); err != nil {
			return err
		}
		_, err := in.Peek(1)
		select {
		case err := <-passed:
			return errors.Join(err, client.SetReadDeadline(time.Time{}))
		default:
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) { // it left, or says that it does
			return errors.Join(err, bottest.ErrAway)
		}
	}
}

// pass counts a message that is a statement, and reports whether it may go on to the server, and the gate to stand at
// before.
func (l *link) pass(message []byte, first bool, committing *atomic.Bool) (ok bool, at *bottest.Gate) {
	if first || message[0] != 'Q' && message[0] != 'B' || bytes.HasPrefix(message[5:], []byte("-- ping")) {
		return true, nil
	}
	commit := bytes.EqualFold(message[5:], []byte("commit\x00"))
	l.mu.Lock()
	l.seen++
	cut := l.seen == l.cut
	if commit {
		at, l.hold = l.hold, nil
		committing.Store(l.lost)
	}
	l.mu.Unlock()
	if cut {
		l.broke()
	}
	return !cut, at
}
