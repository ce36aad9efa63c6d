package admin

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A body that does not end, and headers that do not, are given up within their bounds, and never reach a handler. A small body does.
func TestSlowRequestsEnd(t *testing.T) {
	t.Parallel()
	reached := make(chan string, 10)
	s := serveWith(t, Options{Console: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		reached <- string(body)
	})})
	ends := func(t *testing.T, name, sent, status string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", s.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, sent); err != nil {
				t.Fatal(err)
			}
			if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			line, _ := bufio.NewReader(conn).ReadString('\n')
			if !strings.Contains(line, status) {
				t.Errorf("the answer is %q, want %s", line, status)
			}
		})
	}
	t.Run("all", func(t *testing.T) {
		const head = "POST /login HTTP/1.1\r\nHost: localhost\r\n"
		ends(t, "a slow body", head+"Content-Length: 20\r\n\r\ntoken=", "408")
		ends(t, "a slow chunked body", head+"Transfer-Encoding: chunked\r\n\r\n5\r\ntoken", "408")
		ends(t, "a large body", fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, maxBody+1, strings.Repeat("x", maxBody+1)), "413")
		ends(t, "large headers", head+"X: "+strings.Repeat("x", 2*maxHeader)+"\r\n\r\n", "431")
		ends(t, "slow headers", "POST /login HTTP/1.1\r\nHost: local", "")
		ends(t, "a whole body", head+"Content-Length: 7\r\n\r\ntoken=a", "200")
	})
	close(reached)
	var bodies []string
	for b := range reached {
		bodies = append(bodies, b)
	}
	if len(bodies) != 1 || bodies[0] != "token=a" {
		t.Errorf("the handler got %q", bodies)
	}
}
