package stream

import (
	"context"
	"errors"
	"time"

	"github.com/open-dingtalk/dingtalk-stream-sdk-go/payload"
	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/card"
	"ebb/bot/dingtalk/frame"
	"ebb/bot/dingtalk/request"
	"ebb/bot/dingtalk/value"
	"ebb/sessions"
)

const maxClicks = 16

var errTooManyClicks = errors.New("too many clicks at once")

// clickTime bounds the answer to a click. People see a failure after 2 s.
const clickTime = 1500 * time.Millisecond

// clicks answers the presses of buttons on cards.
type clicks struct {
	slots   chan struct{} // semaphore
	clicked func(ctx context.Context, c chat.Click) chat.Clicked
}

func (k *clicks) judgeClick(ctx context.Context, f *payload.DataFrame) *payload.DataFrameResponse {
	ctx, cancel := context.WithTimeout(ctx, clickTime)
	defer cancel()
	answer := clickAnswer{}
	err := errTooManyClicks
	select {
	case k.slots <- struct{}{}:
		err = guarded(ctx, func() error {
			c, err := frame.DecodeClick(f.Data)
			if err == nil {
				answer = answerTo(c.Action, k.clicked(ctx, c))
			}
			return err
		})
		<-k.slots
	default: // the person presses again
	}
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Str("frame", value.Clip(f.GetMessageId(), 100)).Msg("Click not handled")
	}
	ack := payload.NewSuccessDataFrameResponse()
	ack.Message = "OK"
	if text, err := request.Encode(map[string]clickAnswer{"response": answer}); err == nil {
		ack.SetData(string(text))
	}
	return ack
}

type clickAnswer struct {
	Options *clickOptions `json:"cardUpdateOptions,omitempty"`
	Card    *variables    `json:"cardData,omitempty"`
	Private *variables    `json:"userPrivateData,omitempty"`
}

type variables struct {
	Values map[string]string `json:"cardParamMap"`
}

type clickOptions struct {
	ByKey        bool `json:"updateCardDataByKey"`
	PrivateByKey bool `json:"updatePrivateDataByKey"`
}

func answerTo(action sessions.Button, c chat.Clicked) clickAnswer {
	var a clickAnswer
	if c.Hide {
		a.Card = &variables{card.Hide(string(action))}
	}
	if c.Notice != "" {
		a.Private = &variables{map[string]string{card.VarNotice: c.Notice}}
	}
	if a.Card != nil || a.Private != nil {
		a.Options = &clickOptions{ByKey: true, PrivateByKey: true}
	}
	return a
}
