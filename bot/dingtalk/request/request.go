// Package request makes one HTTP request to DingTalk, and says what its answer means: for the call, and for the reply that waits for it.
package request

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"time"

	"ebb/bot/dingtalk/files"
	"ebb/bot/dingtalk/value"
)

// Client makes requests. All fields are required.
type Client struct {
	HTTP          *http.Client
	Timeout       time.Duration // for one request
	UploadTimeout time.Duration // for one request with a file
}

const maxAnswer = 1 << 20

// ErrUnsent is the failure of a request that never left this machine.
var ErrUnsent = errors.New("not sent")

// Post sends v as JSON, see [Client.Send].
func (c *Client) Post(ctx context.Context, address string, header http.Header, v any) (Answer, error) {
	return c.Send(ctx, http.MethodPost, address, header, v)
}

// Send sends v as JSON, or a form as it is. Its errors have neither the address, which may hold a token, nor the request.
func (c *Client) Send(ctx context.Context, method, address string, header http.Header, v any) (Answer, error) {
	kind, within := "application/json", c.Timeout
	form, isForm := v.(files.Form)
	data, err := form.Data, error(nil)
	if isForm {
		kind, within = form.Type, c.UploadTimeout
	} else {
		data, err = Encode(v)
	}
	if err != nil {
		return Answer{}, fmt.Errorf("%w: %w", ErrUnsent, err)
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(data))
	if err != nil {
		return Answer{}, fmt.Errorf("%w: %w", ErrUnsent, WithoutAddress(err))
	}
	maps.Copy(req.Header, header)
	req.Header.Set("Content-Type", kind)
	req.Header.Set("Accept", "application/json")
	resp, err := c.HTTP.Do(req)
	if err != nil {
		if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
			return Answer{}, fmt.Errorf("%w: %w", ErrUnsent, WithoutAddress(err))
		}
		return Answer{}, WithoutAddress(err)
	}
	defer resp.Body.Close()
	a := Answer{Status: resp.StatusCode}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if errors.Is(err, context.DeadlineExceeded) {
		return Answer{}, err
	}
	if err == nil {
		a.Body, err = value.Parse(string(text))
	}
	a.Intact = err == nil
	return a, nil
}

// Encode is JSON without HTML escapes, which would triple the length of some texts.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encoding a request: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// WithoutAddress strips the address from an error of net/http or net/url.
func WithoutAddress(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
