package stream

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/open-dingtalk/dingtalk-stream-sdk-go/payload"
	"github.com/rs/zerolog"
)

const notStored = "not stored"

var errBroke = errors.New("intake panicked")

func acknowledge() *payload.DataFrameResponse {
	ack := payload.NewSuccessDataFrameResponse()
	ack.Message = "OK"
	ack.SetData(`{"response":null}`)
	return ack
}

func refuse() *payload.DataFrameResponse {
	ack := payload.NewDataFrameResponse(payload.DataFrameResponseStatusCodeKInternalError)
	ack.Message = notStored
	return ack
}

// guarded turns a panic into an error, so that one message never ends the process.
func guarded(ctx context.Context, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			zerolog.Ctx(ctx).Error().Str("panic", fmt.Sprint(p)).Bytes("stack", debug.Stack()).Msg("Intake panicked")
			err = errBroke
		}
	}()
	return f()
}
