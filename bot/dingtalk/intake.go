package dingtalk

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/open-dingtalk/dingtalk-stream-sdk-go/handler"
	"github.com/open-dingtalk/dingtalk-stream-sdk-go/payload"
	"github.com/rs/zerolog"

	"ebb/bot"
)

// maxAccepts bounds the accepts that run at once; more frames wait within the time that their ack has. It is about
// what a pool of database connections bears.
const maxAccepts = 32

// notStored is all that DingTalk learns of a message that could not be stored.
const notStored = "not stored"

var errBroke = errors.New("accept panicked")

// intake takes the frames of every connection.
type intake struct {
	t      *Transport
	accept bot.Accept
	// ctx carries the logger. It does not end with Run nor with a connection: a message that has arrived is stored
	// whatever becomes of the connection.
	ctx context.Context
}

// handle is the SDK's handler for bot messages of one connection. Its context is not used: it ends with the connection.
func (in intake) handle(l *link) handler.IFrameHandler {
	return func(_ context.Context, f *payload.DataFrame) (*payload.DataFrameResponse, error) {
		l.busy.Add(1)
		defer func() {
			l.done.Store(time.Now().UnixNano())
			l.busy.Add(-1)
		}()
		l.touch()
		if in.take(f) {
			ack := payload.NewSuccessDataFrameResponse()
			ack.Message = "OK"
			ack.SetData(`{"response":null}`)
			return ack, nil
		}
		ack := payload.NewDataFrameResponse(payload.DataFrameResponseStatusCodeKInternalError)
		ack.Message = notStored
		return ack, nil
	}
}

// take decodes and stores one frame and reports whether the message is safe.
func (in intake) take(f *payload.DataFrame) bool {
	began := time.Now()
	c := &in.t.counters
	c.frames.Add(1)
	log := zerolog.Ctx(in.ctx).With().Str("frame", clip(f.GetMessageId(), 100)).Logger()
	ctx, cancel := context.WithTimeout(log.WithContext(in.ctx), in.t.timing.accept)
	defer cancel()

	m, err := decode(f.Data, in.t.robot())
	if err != nil {
		c.unreadable.Add(1)
		log.Warn().Err(err).Int("bytes", len(f.Data)).Msg("Frame can't be stored")
		return false
	}
	if m.OverQuota {
		log.Error().Msg("DingTalk withholds messages: the organisation's push quota is used up")
	}
	select {
	case in.t.slots <- struct{}{}:
		defer func() { <-in.t.slots }()
		err = in.guarded(ctx, func() error { return in.accept(ctx, m) })
	case <-ctx.Done():
		err = fmt.Errorf("waiting for storage: %w", ctx.Err())
	}
	if err == nil && ctx.Err() != nil {
		err = errors.New("stored too late for an ack") // it is safe, and its repetition will find it stored
	}
	if err != nil {
		c.rejected.Add(1)
		log.Error().Err(err).Str("msg_id", string(m.ID)).Dur("took_ms", time.Since(began)).Msg("Message not acknowledged")
		return false
	}
	c.accepted.Add(1)
	return true
}

// guarded turns a panic into an error: the SDK would swallow it and leave the frame without an ack.
func (in intake) guarded(ctx context.Context, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			zerolog.Ctx(ctx).Error().Str("panic", fmt.Sprint(p)).Bytes("stack", debug.Stack()).Msg("Accept panicked")
			err = errBroke
		}
	}()
	return f()
}
