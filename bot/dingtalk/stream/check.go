package stream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/open-dingtalk/dingtalk-stream-sdk-go/payload"

	"ebb/bot/dingtalk/request"
)

// ErrStream is the refusal of a stream connection for an application with the right credentials: its bot is not in stream mode.
var ErrStream = errors.New("DingTalk refuses a stream connection (is the bot in stream mode?)")

// Check requests a ticket and opens no connection, which could receive a message. Its error names no secret. It
// is a [net.Error] where DingTalk did not answer, and the error of fetchToken or [ErrStream] for a refusal. A fault of DingTalk is another error.
func Check(ctx context.Context, app App, requests *request.Client, fetchToken func(context.Context) (string, time.Duration, error)) error {
	ctx, cancel := context.WithTimeout(ctx, requests.Timeout)
	defer cancel()
	// The SDK's error has no status.
	a, err := requests.Post(ctx, app.APIBase+"/v1.0/gateway/connections/open", nil, payload.ConnectionEndpointRequest{
		ClientId: app.ClientID, ClientSecret: string(app.Secret), UserAgent: userAgent,
		Subscriptions: []*payload.SubscriptionModel{{Type: callback, Topic: payload.BotMessageCallbackTopic}},
	})
	switch {
	case err != nil:
	case a.Status == http.StatusOK && a.Body.Str("endpoint") != "":
		return nil
	case a.Status < 400 || a.Status >= 500 || a.Status == http.StatusTooManyRequests:
		err = fmt.Errorf("status %d: %s", a.Status, app.Secret.Words(a))
	default:
		if _, _, err = fetchToken(ctx); err == nil {
			err = fmt.Errorf("%w: status %d: %s", ErrStream, a.Status, app.Secret.Words(a))
		}
	}
	if err != nil {
		return fmt.Errorf("asking for a stream connection: %w", err)
	}
	return nil
}
