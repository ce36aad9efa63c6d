package dingtalk

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"ebb/bot/dingtalk/files"
	"ebb/bot/dingtalk/value"
)

type answer struct {
	status int
	body   value.Object
	intact bool   // body is a whole JSON object, and not nil
	token  string // used access token, to keep it out of errors
}

const maxAnswer = 1 << 20

var errUnsent = errors.New("not sent")

func (t *Transport) post(ctx context.Context, address string, header http.Header, v any) (answer, error) {
	return t.sendBody(ctx, http.MethodPost, address, header, v)
}

func withTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d > 0 {
		return context.WithTimeout(ctx, d)
	}
	return ctx, func() {}
}

// sendBody sends v as JSON, or a form as it is. Its errors have neither the address, which may hold a token, nor the request.
func (t *Transport) sendBody(ctx context.Context, method, address string, header http.Header, v any) (answer, error) {
	kind, within := "application/json", t.timing.request
	form, isForm := v.(files.Form)
	data, err := form.Data, error(nil)
	if isForm {
		kind, within = form.Type, t.timing.upload
	} else {
		data, err = encode(v)
	}
	if err != nil {
		return answer{}, fmt.Errorf("%w: %w", errUnsent, err)
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(data))
	if err != nil {
		return answer{}, fmt.Errorf("%w: %w", errUnsent, withoutAddress(err))
	}
	maps.Copy(req.Header, header)
	req.Header.Set("Content-Type", kind)
	req.Header.Set("Accept", "application/json")
	resp, err := t.http.Do(req)
	if err != nil {
		if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
			return answer{}, fmt.Errorf("%w: %w", errUnsent, withoutAddress(err))
		}
		return answer{}, withoutAddress(err)
	}
	defer resp.Body.Close()
	a := answer{status: resp.StatusCode}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if errors.Is(err, context.DeadlineExceeded) {
		return answer{}, err
	}
	if err == nil {
		a.body, err = value.Parse(string(text))
	}
	a.intact = err == nil
	return a, nil
}

// HTML escapes would triple the length of some texts.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encoding a request: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// withoutAddress strips the address from an error of net/http or net/url.
func withoutAddress(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// codeWords is the code and the beginning of the message, for answers to requests without words of people.
func (t *Transport) codeWords(a answer) string {
	if !a.intact {
		return "no JSON answer"
	}
	code := a.body.Str("code", "errcode", "status")
	return strings.TrimSpace(t.config.redactText(code + " " + value.OneLine(a.body.Str("message", "errmsg"))))
}

// codeOf is the code without the message, which may repeat what people wrote, for logs and tables.
func codeOf(a answer) string {
	if !a.intact {
		return "no JSON answer"
	}
	code, said := a.body.Str("code", "errcode", "status"), a.body.Str("message", "errmsg")
	if !codeLike.MatchString(code) {
		code = "no code"
	}
	if said == "" {
		return code
	}
	sum := sha256.Sum256([]byte(said))
	return fmt.Sprintf("%s (%d bytes, hash %s)", code, len(said), hex.EncodeToString(sum[:4]))
}

var codeLike = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// redactText shortens an external text and removes secrets.
func (c Config) redactText(s string, secrets ...string) string {
	for _, secret := range append(secrets, c.ClientSecret) {
		if len(secret) >= 4 {
			s = strings.ReplaceAll(s, secret, "***")
		}
	}
	return value.Clip(s, 200)
}
