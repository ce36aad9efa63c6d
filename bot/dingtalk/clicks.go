package dingtalk

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

// OnClick implements [chat.Clickable].
func (t *Transport) OnClick(f func(ctx context.Context, c chat.Click) chat.Clicked) { t.clicked = f }

func (in intake) judgeClick(f *payload.DataFrame) *payload.DataFrameResponse {
	ctx, cancel := context.WithTimeout(in.ctx, clickTime)
	defer cancel()
	answer := clickAnswer{}
	err := errTooManyClicks
	select {
	case in.t.clicks <- struct{}{}:
		err = guarded(ctx, func() error {
			c, err := frame.DecodeClick(f.Data)
			if err == nil && in.t.clicked != nil {
				answer = answerTo(c.Action, in.t.clicked(ctx, c))
			}
			return err
		})
		<-in.t.clicks
	default: // the person presses again
	}
	if err != nil {
		zerolog.Ctx(in.ctx).Warn().Err(err).Str("frame", value.Clip(f.GetMessageId(), 100)).Msg("Click not handled")
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
	Card    *cardData     `json:"cardData,omitempty"`
	Private *cardData     `json:"userPrivateData,omitempty"`
}

type clickOptions struct {
	ByKey        bool `json:"updateCardDataByKey"`
	PrivateByKey bool `json:"updatePrivateDataByKey"`
}

func answerTo(action sessions.Button, c chat.Clicked) clickAnswer {
	var a clickAnswer
	if c.Hide {
		a.Card = &cardData{card.Hide(string(action))}
	}
	if c.Notice != "" {
		a.Private = &cardData{map[string]string{card.VarNotice: c.Notice}}
	}
	if a.Card != nil || a.Private != nil {
		a.Options = &clickOptions{ByKey: true, PrivateByKey: true}
	}
	return a
}
