package dingtalk

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/open-dingtalk/dingtalk-stream-sdk-go/payload"
	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/frame"
	"ebb/bot/dingtalk/value"
	"ebb/sessions"
)

// About the size of a database pool; further frames wait within their ack deadline.
const maxAccepts = 32

// At these bounds of frames that are not yet stored reading stops. DingTalk redelivers frames whose ack is late.
const (
	maxHeldBytes  = 32 << 20
	maxHeldFrames = 1024
)

const notStored = "not stored"

var errBroke = errors.New("intake panicked")

type intake struct {
	t      *Transport
	decode func(data string, robot sessions.RobotCode) (sessions.Message, error)
	accept chat.Accept
	// ctx carries the logger. It outlives Run and connections: an arrived message is stored in any case.
	ctx context.Context
}

// takeFrame decodes a frame and registers its place in its conversation, in call order. It blocks at the bound of held
// bytes.
func (in intake) takeFrame(f *payload.DataFrame, bytes int) (store func() *payload.DataFrameResponse) {
	began := time.Now()
	c := &in.t.counters
	c.frames.Add(1)
	log := zerolog.Ctx(in.ctx).With().Str("frame", value.Clip(f.GetMessageId(), 100)).Logger()
	weight := min(max(int64(bytes), maxHeldBytes/maxHeldFrames), maxHeldBytes)
	_ = in.t.held.Acquire(context.WithoutCancel(in.ctx), weight) // every held frame is released within its ack deadline
	var m sessions.Message
	err := guarded(log.WithContext(in.ctx), func() (err error) {
		m, err = in.decode(f.Data, in.t.config.robotCode())
		return err
	})
	f.Data = ""                       // the message holds all needed data
	if errors.Is(err, frame.ErrOwn) { // an answer to it would be the next such message
		in.t.held.Release(weight)
		log.Warn().Msg("Message of the bot itself ignored")
		return acknowledge
	}
	if err != nil {
		in.t.held.Release(weight)
		c.unreadable.Add(1)
		log.Warn().Err(err).Int("bytes", bytes).Msg("Frame refused: it can't be stored")
		return refuse
	}
	m.ReceivedAt = began
	stored := in.t.arrivals.addMessage(&m)
	return func() *payload.DataFrameResponse {
		defer in.t.held.Release(weight)
		defer stored()
		return in.storeMessage(log, m)
	}
}

// storeMessage acknowledges within the time that DingTalk waits, counted from the frame. A message that was stored too late is refused: its
// redelivery is recognized, while an acknowledgement after the deadline might not count.
func (in intake) storeMessage(log zerolog.Logger, m sessions.Message) *payload.DataFrameResponse {
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
		err = errors.New("stored too late for an ack") // it is stored, and its redelivery is recognized
	}
	if err != nil {
		in.t.counters.rejected.Add(1)
		log.Error().Err(err).Str("msg_id", string(m.ID)).Dur("took_ms", time.Since(m.ReceivedAt)).Msg("Message not acknowledged")
		return refuse()
	}
	in.t.counters.accepted.Add(1)
	return acknowledge()
}

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
