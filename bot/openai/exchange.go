package openai

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"ebb/sessions/llm"
)

const (
	maxStreamBytes = 64 << 20
	maxPlainBytes  = 16 << 20
	maxErrorBytes  = 64 << 10
	// endMark follows the last line of a stream, to distinguish its end from [DONE], which go-openai reports alike.
	endMark = "[END OF BODY]"
)

// exchange records an HTTP exchange beyond go-openai's interface.
type exchange struct {
	send     map[string]any // the body, in place of go-openai's
	stream   bool
	messages []llm.Message // as the caller wrote them

	sent   int // bytes of the request
	status int
	said   *providerError // without the request's own words
	after  time.Duration  // Retry-After
	body   []byte         // unless it is a stream
	rest   io.Reader      // below go-openai's reader
}

type exchangeKey struct{}

func withExchange(ctx context.Context, x *exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

type doer struct{ client *http.Client }

// Do sends the exchange's own body, and records the answer.
func (d doer) Do(req *http.Request) (*http.Response, error) {
	x, ok := req.Context().Value(exchangeKey{}).(*exchange)
	if !ok {
		return d.client.Do(req)
	}
	if err := replaceBody(req, x.send); err != nil {
		return nil, err
	}
	x.sent = int(max(req.ContentLength, 0))
	resp, err := d.client.Do(req)
	if err != nil {
		return nil, err
	}
	x.status = resp.StatusCode
	x.after = retryAfter(resp.Header, time.Now())
	ok = resp.StatusCode >= 200 && resp.StatusCode < 300
	if ok && x.stream && !isJSON(resp.Header) {
		limited := io.LimitReader(resp.Body, maxStreamBytes)
		x.rest = limited
		resp.Body = &eventLines{src: bufio.NewReader(limited), Closer: resp.Body}
		return resp, nil
	}
	return resp, x.readAll(resp, ok)
}

// readAll keeps the body of a plain answer or an error for go-openai to read again. A plain answer to a stream
// request becomes a stream of one chunk.
func (x *exchange) readAll(resp *http.Response, ok bool) error {
	defer resp.Body.Close()
	limit := int64(maxPlainBytes)
	if !ok {
		limit = maxErrorBytes
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, limit))
	if err != nil && ok {
		return fmt.Errorf("reading the answer: %w", err)
	}
	x.body = b
	if ok && x.stream {
		var one bytes.Buffer
		if json.Compact(&one, b) != nil {
			one.Reset()
		}
		b = appendEventLine(nil, one.Bytes())
		b = appendEventLine(b, []byte("[DONE]"))
	}
	resp.Body = io.NopCloser(bytes.NewReader(b))
	return nil
}

// replaceBody sends a body with fields and forms that go-openai does not have.
func replaceBody(req *http.Request, body map[string]any) error {
	if body == nil {
		return nil
	}
	b, err := encodeBody(body)
	if err != nil {
		return fmt.Errorf("encoding the request: %w", err)
	}
	req.Body = io.NopCloser(bytes.NewReader(b))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
	req.ContentLength = int64(len(b))
	return nil
}

// encodeBody appends the tools as they are: they are the largest constant part of most requests, and the encoder would read them again.
func encodeBody(body map[string]any) ([]byte, error) {
	tools, ok := body["tools"].(json.RawMessage)
	if !ok || len(body) == 1 {
		return json.Marshal(body)
	}
	rest := maps.Clone(body)
	delete(rest, "tools")
	b, err := json.Marshal(rest)
	if err != nil {
		return nil, err
	}
	return slices.Concat(b[:len(b)-1], []byte(`,"tools":`), tools, []byte("}")), nil
}

func isJSON(h http.Header) bool {
	t, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return t == "application/json"
}

// eventLines passes on only the data lines of server-sent events: go-openai keeps and bounds all other lines, which
// keep-alive comments would exhaust.
type eventLines struct {
	io.Closer
	src  *bufio.Reader
	line []byte // the last one that was longer than the reader's room
	room []byte // for buf
	buf  []byte
	err  error
}

// Read implements io.Reader.
func (e *eventLines) Read(p []byte) (int, error) {
	for len(e.buf) == 0 {
		if e.err != nil {
			return 0, e.err
		}
		line, err := e.nextLine()
		e.room = e.room[:0]
		if data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:")); ok {
			e.room = appendEventLine(e.room, bytes.TrimSpace(data))
		}
		if err == io.EOF {
			e.room = appendEventLine(e.room, []byte(endMark))
		}
		e.buf, e.err = e.room, err
	}
	n := copy(p, e.buf)
	e.buf = e.buf[n:]
	return n, nil
}

// nextLine returns a line, which is valid until the next one.
func (e *eventLines) nextLine() ([]byte, error) {
	line, err := e.src.ReadSlice('\n')
	if err != bufio.ErrBufferFull {
		return line, err
	}
	for e.line = e.line[:0]; err == bufio.ErrBufferFull; {
		e.line = append(e.line, line...)
		line, err = e.src.ReadSlice('\n')
	}
	e.line = append(e.line, line...)
	return e.line, err
}

// The blank before an error's name hides it from go-openai, whose decoder knows fewer shapes of errors than ours.
func appendEventLine(line, data []byte) []byte {
	if len(data) == 0 {
		return line
	}
	line = append(line, "data: "...)
	if rest, ok := bytes.CutPrefix(data, []byte(`{"error":`)); ok {
		line, data = append(line, `{ "error":`...), rest
	}
	line = append(line, data...)
	return append(line, '\n')
}

// retryAfter reads milliseconds, seconds or a date; 0 for none.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(strings.TrimSpace(h.Get("Retry-After-Ms")), 64); err == nil {
		return clampSeconds(ms / 1000)
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return clampSeconds(s)
	}
	if at, err := http.ParseTime(v); err == nil {
		return clampSeconds(at.Sub(now).Seconds())
	}
	return 0
}

func clampSeconds(s float64) time.Duration {
	if !(s > 0) { // also NaN
		return 0
	}
	return time.Duration(min(s, 24*3600) * float64(time.Second))
}

// newTransport keeps a connection for each of many sessions to one host; Go's default of two would mean a TLS
// handshake for almost every turn.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          512,
		MaxIdleConnsPerHost:   256,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
}
