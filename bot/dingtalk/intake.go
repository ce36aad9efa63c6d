package dingtalk

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/open-dingtalk/dingtalk-stream-sdk-go/payload"
	"github.com/rs/zerolog"

	"ebb/bot"
	"ebb/sessions"
)

// maxAccepts bounds the accepts that run at once; more frames wait within the time that their ack has. It is about
// what a pool of database connections bears.
const maxAccepts = 32

// Frames that were read and are not stored yet are bounded in bytes and in number. At the bound no further frame is read:
// the rest waits in the connection, and DingTalk sends again what waits too long for its ack.
const (
	maxHeldBytes  = 32 << 20
	maxHeldFrames = 1024
)

// notStored is all that DingTalk learns of a message that could not be stored.
const notStored = "not stored"

var errBroke = errors.New("intake panicked")

// intake takes the messages of every connection.
type intake struct {
	t      *Transport
	decode func(data string, robot sessions.RobotCode) (sessions.Message, error)
	accept bot.Accept
	// ctx carries the logger. It does not end with Run nor with a connection: a message that has arrived is stored
	// whatever becomes of the connection.
	ctx context.Context
}

// take decodes a frame of so many bytes and notes its place in its conversation, in the order of its calls. It waits while
// too much is held already. The function that it returns stores the message, at any time later, and returns the ack.
func (in intake) take(f *payload.DataFrame, bytes int) (store func() *payload.DataFrameResponse) {
	began := time.Now()
	c := &in.t.counters
	c.frames.Add(1)
	log := zerolog.Ctx(in.ctx).With().Str("frame", clip(f.GetMessageId(), 100)).Logger()
	weight := min(max(int64(bytes), maxHeldBytes/maxHeldFrames), maxHeldBytes)
	_ = in.t.held.Acquire(context.WithoutCancel(in.ctx), weight) // each frame that is held is let go within the time of its ack
	var m sessions.Message
	err := guarded(log.WithContext(in.ctx), func() (err error) {
		m, err = in.decode(f.Data, in.t.robot())
		return err
	})
	f.Data = "" // the message holds what is needed of it
	if err != nil {
		in.t.held.Release(weight)
		c.unreadable.Add(1)
		log.Warn().Err(err).Int("bytes", bytes).Msg("Frame can't be stored")
		return refuse
	}
	m.ReceivedAt = began
	stored := in.t.arrivals.add(&m)
	return func() *payload.DataFrameResponse {
		defer in.t.held.Release(weight)
		defer stored()
		return in.store(log, m)
	}
}

// store hands a message in, within the time that its ack has, and returns the ack.
func (in intake) store(log zerolog.Logger, m sessions.Message) *payload.DataFrameResponse {
	ctx, cancel := context.WithDeadline(log.WithContext(in.ctx), m.ReceivedAt.Add(in.t.timing.accept))
	defer cancel()
	if m.OverQuota {
		log.Error().Msg("DingTalk withholds messages: the organisation's push quota is used up")
	}
	var err error
	select {
	case in.t.slots <- struct{}{}:
		err = guarded(ctx, func() error { return in.accept(ctx, m) })
		<-in.t.slots
	case <-ctx.Done():
		err = fmt.Errorf("waiting for storage: %w", ctx.Err())
	}
	if err == nil && ctx.Err() != nil {
		err = errors.New("stored too late for an ack") // it is safe, and its repetition will find it stored
	}
	if err != nil {
		in.t.counters.rejected.Add(1)
		log.Error().Err(err).Str("msg_id", string(m.ID)).Dur("took_ms", time.Since(m.ReceivedAt)).Msg("Message not acknowledged")
		return refuse()
	}
	in.t.counters.accepted.Add(1)
	ack := payload.NewSuccessDataFrameResponse()
	ack.Message = "OK"
	ack.SetData(`{"response":null}`)
	return ack
}

// refuse is the ack of a message that is not stored.
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
