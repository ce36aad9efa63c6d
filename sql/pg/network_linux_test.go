package pg

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// The kernel ends each connection to a server that vanished: the listening one, the shared ones and those of heartbeats.
func TestConnectionsEndWhenTheServerVanishes(t *testing.T) {
	t.Parallel()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	for name, pooler := range map[string]bool{"direct": false, "through a pooler": true} {
		t.Run(name, func(t *testing.T) {
			pool, listen, err := connect(t.Context(), Options{URL: "postgres://u@" + server.Addr().String() + "/d", Pooler: pooler})
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Heartbeats.Close()
			defer pool.Close()
			for name, c := range map[string]*pgx.ConnConfig{
				"listening": listen, "shared": pool.Config().ConnConfig, "heartbeats": pool.Heartbeats.Config().ConnConfig,
			} {
				conn, err := c.DialFunc(t.Context(), "tcp", server.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				for what, want := range map[[2]int]int{
					{syscall.SOL_SOCKET, syscall.SO_KEEPALIVE}:   1,
					{syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE}:  int(askAfter / time.Second),
					{syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL}: 1,
					{syscall.IPPROTO_TCP, tcpUserTimeout}:        int(deadAfter / time.Millisecond),
				} {
					if got := option(t, conn, what); got != want {
						t.Errorf("%s: option %v is %d, want %d", name, what, got, want)
					}
				}
				_ = conn.Close()
			}
		})
	}
}

func option(t *testing.T, conn net.Conn, what [2]int) (value int) {
	t.Helper()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var got error
	if err := raw.Control(func(fd uintptr) { value, got = syscall.GetsockoptInt(int(fd), what[0], what[1]) }); err != nil || got != nil {
		t.Fatal(err, got)
	}
	return value
}
