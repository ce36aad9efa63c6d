package dingtalk

import (
	"context"
	"net/http"

	"ebb/bot/dingtalk/calls"
	"ebb/bot/dingtalk/openapi"
	"ebb/bot/dingtalk/reaction"
	"ebb/bot/dingtalk/request"
	"ebb/sessions"
)

// reactionCalls implement [reaction.API].
type reactionCalls struct {
	api    *openapi.Client
	judge  *request.Judge
	robots robots
}

var _ reaction.API = reactionCalls{}

type reactionBody struct {
	RobotCode      sessions.RobotCode      `json:"robotCode"`
	MessageID      sessions.MessageID      `json:"openMsgId"`
	ConversationID sessions.ConversationID `json:"openConversationId"`
	Type           int                     `json:"emotionType"`
	Name           string                  `json:"emotionName"`
	Text           reactionText            `json:"textEmotion"`
}

type reactionText struct {
	ID         string `json:"emotionId"`
	Name       string `json:"emotionName"`
	Text       string `json:"text"`
	Background string `json:"backgroundId"`
}

// SetReaction implements [reaction.API].
func (c reactionCalls) SetReaction(ctx context.Context, m reaction.Mark) error {
	return c.callReaction(ctx, calls.Reaction, "/v1.0/robot/emotion/reply", "setting a reaction", m)
}

// RemoveReaction implements [reaction.API].
func (c reactionCalls) RemoveReaction(ctx context.Context, m reaction.Mark) error {
	return c.callReaction(ctx, calls.ReactionRecall, "/v1.0/robot/emotion/recall", "removing a reaction", m)
}

func reactionName(lang string) string {
	if lang == "en" {
		return "🤔Thinking"
	}
	return "🤔思考中"
}

// callReaction uses calls that were reserved before. A refusal for lack of a permission is permanent, so that the month's calls are
// not spent on it.
func (c reactionCalls) callReaction(ctx context.Context, api calls.API, path, doing string, m reaction.Mark) error {
	name := reactionName(m.Lang)
	body := reactionBody{
		RobotCode: c.robots.codeOf(m.Robot), MessageID: m.Message, ConversationID: m.Conversation, Type: 2, Name: name,
		Text: reactionText{ID: "2659900", Name: name, Text: name, Background: "im_bg_1"},
	}
	a, failed := c.api.Do(ctx, openapi.Call{API: api, Need: calls.Finish, Method: http.MethodPost, Path: path, Doing: doing, Body: body, Reserved: &m.Reserved})
	if failed == nil {
		failed = c.judge.OpenAPI(sessions.Target{}, a, doing) // its rate is no message's
	}
	if failed == nil {
		return nil
	}
	if a.Intact && a.Body.Str("code") != "" {
		failed.Maybe = false // refused, whatever the status
	}
	if a.Class() == request.Denied {
		failed.Permanent = true // a lack of permission is not worth more calls
	}
	return failed
}
