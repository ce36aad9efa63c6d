package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/open-dingtalk/dingtalk-stream-sdk-go/payload"
	"github.com/rs/zerolog"
	"golang.org/x/sync/semaphore"

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

type decoder func(data string, robot sessions.RobotCode) (sessions.Message, error)

// intake stores the messages of frames. At its bounds reading stops.
type intake struct {
	robot    sessions.RobotCode  // robot of a frame that names none
	within   time.Duration       // from a frame's arrival to its last timely ack
	slots    chan struct{}       // semaphore of accepts
	held     *semaphore.Weighted // bytes of frames that are read and not yet stored
	arrivals *arrivals
	counters *counters

	decode decoder
	accept chat.Accept
	// ctx carries the logger. It outlives Run and connections: an arrived message is stored in any case.
	ctx context.Context
}

// takeFrame decodes a frame and registers its place in its conversation, in call order. It blocks at the bound of held
// bytes.
func (in intake) takeFrame(f *payload.DataFrame, bytes int) (store func() *payload.DataFrameResponse) {
	began := time.Now()
	in.counters.frames.Add(1)
	log := zerolog.Ctx(in.ctx).With().Str("frame", value.Clip(f.GetMessageId(), 100)).Logger()
	weight := min(max(int64(bytes), maxHeldBytes/maxHeldFrames), maxHeldBytes)
	_ = in.held.Acquire(context.WithoutCancel(in.ctx), weight) // every held frame is released within its ack deadline
	var m sessions.Message
	err := guarded(log.WithContext(in.ctx), func() (err error) {
		m, err = in.decode(f.Data, in.robot)
		return err
	})
	f.Data = ""                       // the message holds all needed data
	if errors.Is(err, frame.ErrOwn) { // an answer to it would be the next such message
		in.held.Release(weight)
		log.Warn().Msg("Message of the bot itself ignored")
		return acknowledge
	}
	if err != nil {
		in.held.Release(weight)
		in.counters.unreadable.Add(1)
		log.Warn().Err(err).Int("bytes", bytes).Msg("Frame refused: it can't be stored")
		return refuse
	}
	m.ReceivedAt = began
	stored := in.arrivals.addMessage(&m)
	return func() *payload.DataFrameResponse {
		defer in.held.Release(weight)
		defer stored()
		return in.storeMessage(log, m)
	}
}

// storeMessage acknowledges within the time that DingTalk waits, counted from the frame. A message that was stored too late is refused: its
// redelivery is recognized, while an acknowledgement after the deadline might not count.
func (in intake) storeMessage(log zerolog.Logger, m sessions.Message) *payload.DataFrameResponse {
	ctx, cancel := context.WithDeadline(log.WithContext(in.ctx), m.ReceivedAt.Add(in.within))
	defer cancel()
	if m.OverQuota {
		log.Error().Msg("DingTalk withholds messages: the organisation's push quota is used up")
	}
	var err error
	select {
	case in.slots <- struct{}{}:
		err = guarded(ctx, func() error { return in.accept(ctx, m) })
		<-in.slots
	case <-ctx.Done():
		err = fmt.Errorf("waiting for storage: %w", ctx.Err())
	}
	if err == nil && ctx.Err() != nil {
		err = errors.New("stored too late for an ack") // it is stored, and its redelivery is recognized
	}
	if err != nil {
		in.counters.rejected.Add(1)
		log.Error().Err(err).Str("msg_id", string(m.ID)).Dur("took_ms", time.Since(m.ReceivedAt)).Msg("Message not acknowledged")
		return refuse()
	}
	in.counters.accepted.Add(1)
	return acknowledge()
}
