package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"ebb/bot/chat"
	"ebb/sessions"
	"ebb/sessions/retry"
)

// The failures that no retry mends.
var (
	// ErrAddress is an address that may not be read.
	ErrAddress = errors.New("the file's address may not be read")
	// ErrTooLarge is a file over the limit.
	ErrTooLarge = errors.New("the file is too large")
	// ErrGone is the refusal of an address, as an expired one gets.
	ErrGone = errors.New("the file's address is refused")
)

// errAgain is a failure that may pass.
var errAgain = errors.New("the file could not be read")

// fetchTime bounds one attempt: 50 MB at 1 MB/s.
const fetchTime = 60 * time.Second

// A server that sends less than paceBytes within paceTime holds the place of other files.
const (
	paceTime  = 10 * time.Second
	paceBytes = 32 << 10
)

// pacedReader ends a download that is too slow.
type pacedReader struct {
	io.Reader
	limit *time.Timer
	time  time.Duration
	left  int
}

// Read implements io.Reader.
func (p *pacedReader) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	if p.left -= n; p.left <= 0 {
		p.left = paceBytes
		p.limit.Reset(p.time)
	}
	return n, err
}

const attempts = 3

// Fetcher reads files.
type Fetcher struct {
	origin string // scheme and host of the API
	open   *http.Client
	own    *http.Client // for the origin of the API
	pauses retry.Pauses
	pace   time.Duration // for paceBytes
}

// New returns a fetcher beside an API.
func New(apiBase string) *Fetcher {
	guarded := &net.Dialer{Timeout: 10 * time.Second, Control: checkAddress}
	plain := &net.Dialer{Timeout: 10 * time.Second}
	return &Fetcher{
		origin: originOf(apiBase), open: clientOf(guarded), own: clientOf(plain),
		pauses: retry.Pauses{First: 300 * time.Millisecond, Max: 2 * time.Second, Jitter: 0.25}, pace: paceTime,
	}
}

// clientOf has no proxy: it would resolve the name itself, behind the check.
func clientOf(d *net.Dialer) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext: d.DialContext, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 4, IdleConnTimeout: 30 * time.Second,
			TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: 20 * time.Second, DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Scheme + "://" + u.Host)
}

// checkAddress runs for each address that a name resolved to, right before the connection.
func checkAddress(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !isPublic(at.Addr()) {
		return ErrAddress
	}
	return nil
}

// special are the ranges that are not public, besides those that package netip names.
var special = prefixes(
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "5f00::/16", "fec0::/10",
)

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		list[i] = netip.MustParsePrefix(text)
	}
	return list
}

// nat64 holds IPv4 addresses in their last four bytes.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

func isPublic(a netip.Addr) bool {
	a = a.Unmap()
	if nat64.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() {
		return false
	}
	for _, p := range special {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// Fetch writes the file at an address to a file, from its beginning. Failures that may pass are tried again. The errors have no word of the
// address, which holds a signature.
func (f *Fetcher) Fetch(ctx context.Context, address string, to *os.File, limit int64) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return ErrAddress
	}
	client := f.open
	if originOf(address) == f.origin {
		client = f.own
	}
	for n := 0; ; n++ {
		err := f.read(ctx, client, address, to, limit)
		if err == nil || !errors.Is(err, errAgain) || n == attempts-1 || !retry.Sleep(ctx, f.pauses.After(n)) {
			return err
		}
	}
}

func (f *Fetcher) read(ctx context.Context, client *http.Client, address string, to *os.File, limit int64) error {
	ctx, stop := context.WithTimeout(ctx, fetchTime)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return ErrAddress
	}
	resp, err := client.Do(req)
	switch {
	case errors.Is(err, ErrAddress):
		return ErrAddress
	case err != nil:
		return fmt.Errorf("%w: %w", errAgain, withoutAddress(err))
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode == http.StatusForbidden, resp.StatusCode == http.StatusNotFound, resp.StatusCode == http.StatusGone:
		return fmt.Errorf("%w: status %d", ErrGone, resp.StatusCode)
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return fmt.Errorf("%w: it leads to another one", ErrAddress)
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("%w: status %d", errAgain, resp.StatusCode)
	case resp.ContentLength > limit:
		return ErrTooLarge
	}
	if err := to.Truncate(0); err != nil {
		return fmt.Errorf("emptying the file: %w", err)
	}
	slow := time.AfterFunc(f.pace, stop)
	defer slow.Stop()
	n, err := io.Copy(io.NewOffsetWriter(to, 0), io.LimitReader(&pacedReader{resp.Body, slow, f.pace, paceBytes}, limit+1))
	switch {
	case n > limit:
		return ErrTooLarge
	case err != nil:
		return fmt.Errorf("%w: %w", errAgain, err)
	case resp.ContentLength >= 0 && n < resp.ContentLength:
		return fmt.Errorf("%w: it ended early", errAgain)
	}
	return nil
}

func withoutAddress(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// Download exchanges one of the codes of a file for an address by ask, and writes the file at that. A refused address is exchanged again: it
// lives for minutes. The error is a [*chat.FileError].
func (f *Fetcher) Download(
	ctx context.Context, codes []string, to *os.File, limit int64, ask func(ctx context.Context, code string) (string, *chat.FileError),
) error {
	fault := &chat.FileError{Fault: sessions.MediaExpired, Err: errors.New("the message has no code of it")}
	for _, code := range codes {
		if code == "" {
			continue
		}
		if fault = f.download(ctx, code, to, limit, ask); fault == nil {
			return nil
		}
		if fault.Fault != sessions.MediaExpired {
			break
		}
	}
	return fault
}

func (f *Fetcher) download(
	ctx context.Context, code string, to *os.File, limit int64, ask func(ctx context.Context, code string) (string, *chat.FileError),
) *chat.FileError {
	for try := 0; ; try++ {
		address, fault := ask(ctx, code)
		if fault == nil {
			fault = faultOf(f.Fetch(ctx, address, to, limit))
		}
		again := fault != nil && fault.Fault == sessions.MediaUnavailable && ctx.Err() == nil
		if !again || try == 1 || !retry.Sleep(ctx, retry.Pauses{First: time.Second, Jitter: 0.25}.After(0)) {
			return fault
		}
	}
}

func faultOf(err error) *chat.FileError {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrTooLarge):
		return &chat.FileError{Fault: sessions.MediaTooLarge, Err: err}
	case errors.Is(err, ErrAddress):
		return &chat.FileError{Fault: sessions.MediaRefused, Err: err}
	}
	return &chat.FileError{Fault: sessions.MediaUnavailable, Err: err}
}
