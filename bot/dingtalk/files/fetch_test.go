package files

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"ebb/sessions/retry"
)

func fetched(t *testing.T, f *Fetcher, address string, limit int64) (string, error) {
	t.Helper()
	f.pauses = retry.Pauses{First: time.Millisecond}
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	err = f.Fetch(t.Context(), address, file, limit)
	b, readErr := os.ReadFile(file.Name())
	if readErr != nil {
		t.Fatal(readErr)
	}
	return string(b), err
}

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// A file is read from the origin of the API wherever that is, whole and within its limit. Failures that may pass are tried again, also one
// in the middle of the file.
func TestFilesAreRead(t *testing.T) {
	t.Parallel()
	const whole = "内容内容"
	var calls atomic.Int64
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n := calls.Add(1)
		switch {
		case r.URL.Path == "/flaky" && n == 1:
			w.WriteHeader(http.StatusBadGateway)
		case r.URL.Path == "/flaky" && n == 2:
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte(strings.Repeat("x", 50)))
		case r.URL.Path == "/gone":
			w.WriteHeader(http.StatusForbidden)
		case r.URL.Path == "/down":
			w.WriteHeader(http.StatusBadGateway)
		case r.URL.Path == "/moved":
			http.Redirect(w, r, "/flaky", http.StatusFound)
		case r.URL.Path == "/endless":
			w.WriteHeader(http.StatusOK)
			for range 100 {
				_, _ = w.Write(make([]byte, 1<<10))
			}
		default:
			_, _ = w.Write([]byte(whole))
		}
	})
	f := New(s.URL)
	if got, err := fetched(t, f, s.URL+"/flaky?Expires=1", 1000); err != nil || got != whole {
		t.Errorf("%q, %v", got, err)
	}
	for path, want := range map[string]error{"/gone": ErrGone, "/moved": ErrAddress, "/endless": ErrTooLarge, "/down": errAgain} {
		if _, err := fetched(t, f, s.URL+path, 2<<10); !errors.Is(err, want) || strings.Contains(err.Error(), s.URL) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
	if _, err := fetched(t, f, s.URL+"/large", 3); !errors.Is(err, ErrTooLarge) {
		t.Errorf("over its limit: %v", err)
	}
}

// No address of this machine or of its networks is read, whatever name leads to it, and nothing but HTTP.
func TestInnerAddressesAreRefused(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	s := serve(t, func(http.ResponseWriter, *http.Request) { calls.Add(1) })
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	f := New("https://api.dingtalk.com")
	for _, address := range []string{
		s.URL + "/f", "http://localhost:" + port + "/f", "http://127.1.2.3:" + port, "http://[::1]:" + port, "http://0.0.0.0:" + port, "http://[::ffff:127.0.0.1]:" + port,
		"http://2130706433:" + port, "file:///etc/passwd", "gopher://127.0.0.1", "http://user@example.com/", "http://", "::",
	} {
		if _, err := fetched(t, f, address, 100); err == nil {
			t.Errorf("%s was read", address)
		}
	}
	if calls.Load() != 0 {
		t.Errorf("%d requests arrived", calls.Load())
	}
	// The same host on another port is another origin.
	if _, err := fetched(t, New("http://127.0.0.1:1"), s.URL+"/f", 100); !errors.Is(err, ErrAddress) {
		t.Errorf("another port of the API's host: %v", err)
	}
}

func TestOnlyPublicAddressesAreRead(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"8.134.254.49": true, "2400:3200::1": true, "10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false, "100.100.100.200": false,
		"127.0.0.1": false, "0.0.0.0": false, "224.0.0.1": false, "255.255.255.255": false, "::": false, "::1": false, "fe80::1": false, "fc00::1": false, "fd00:ec2::254": false,
		"::ffff:10.0.0.1": false, "64:ff9b::a00:1": false, "2002:7f00:1::": false, "198.18.0.1": false, "ff02::1": false,
	} {
		if got := isPublic(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is public: %t", address, got)
		}
	}
}

// A server of a byte a second holds no place for long, and one that is merely slow is read to its end.
func TestSlowServersAreLeft(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(6*paceBytes))
		for i := 0; i < 6; i++ {
			size := paceBytes
			if r.URL.Path == "/drip" {
				size = 1
			}
			_, _ = w.Write(make([]byte, size))
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
				return
			case <-gone:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
		if r.URL.Path == "/drip" { // it goes on for ever
			select {
			case <-r.Context().Done():
			case <-gone:
			}
		}
	})
	defer close(gone)
	f := New(s.URL)
	f.pace = 5 * time.Second
	if _, err := fetched(t, f, s.URL+"/slow", 1<<20); err != nil {
		t.Errorf("a slow server: %v", err)
	}
	f = New(s.URL)
	f.pace = 200 * time.Millisecond
	if _, err := fetched(t, f, s.URL+"/drip", 1<<20); !errors.Is(err, errAgain) {
		t.Errorf("a server of single bytes: %v", err)
	}
}

// The address is checked where the connection is made: a name that leads elsewhere a moment later, or in the second of two answers, is refused
// all the same.
func TestAddressesAreCheckedAtTheConnection(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	s := serve(t, func(http.ResponseWriter, *http.Request) { calls.Add(1) })
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	names := serveNames(t)
	f := New("https://api.dingtalk.com")
	transport, ok := f.open.Transport.(*http.Transport)
	if !ok {
		t.Fatal("the client has another transport")
	}
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", names.addr)
	}}
	transport.DialContext = (&net.Dialer{Timeout: time.Second, Control: checkAddress, Resolver: resolver}).DialContext
	for range 3 { // a reserved address at first, then inner ones
		if _, err := fetched(t, f, "http://changes.example.com:"+port+"/f", 100); err == nil {
			t.Error("an inner address was read")
		}
	}
	if names.asked.Load() < 2 {
		t.Errorf("the name was looked up %d times", names.asked.Load())
	}
	if calls.Load() != 0 {
		t.Errorf("%d requests arrived", calls.Load())
	}
}

// nameServer answers the first question with a documentation address, and any other with that of this machine.
type nameServer struct {
	addr  string
	asked atomic.Int64
}

func serveNames(t *testing.T) *nameServer {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	n := &nameServer{addr: conn.LocalAddr().String()}
	go func() {
		buf := make([]byte, 512)
		for {
			size, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			var p dnsmessage.Parser
			head, err := p.Start(buf[:size])
			if err != nil {
				continue
			}
			q, err := p.Question()
			if err != nil {
				continue
			}
			b := dnsmessage.NewBuilder(nil, dnsmessage.Header{ID: head.ID, Response: true, Authoritative: true})
			_ = b.StartQuestions()
			_ = b.Question(q)
			_ = b.StartAnswers()
			if q.Type == dnsmessage.TypeA {
				at := [4]byte{192, 0, 2, 1}
				if n.asked.Add(1) > 1 {
					at = [4]byte{127, 0, 0, 1}
				}
				_ = b.AResource(dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 0}, dnsmessage.AResource{A: at})
			}
			if out, err := b.Finish(); err == nil {
				_, _ = conn.WriteTo(out, from)
			}
		}
	}()
	return n
}
