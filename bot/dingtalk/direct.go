package dingtalk

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/calls"
	"ebb/bot/dingtalk/files"
	"ebb/bot/dingtalk/frame"
	"ebb/bot/dingtalk/openapi"
	"ebb/bot/dingtalk/request"
	"ebb/bot/dingtalk/value"
	"ebb/sessions"
)

// direct sends messages by the open API, to people and groups without a webhook of use.
type direct struct {
	api      *openapi.Client
	judge    *request.Judge
	governor *calls.Governor
	robots   robots
}

type apiBody struct {
	RobotCode      sessions.RobotCode      `json:"robotCode"`
	ConversationID sessions.ConversationID `json:"openConversationId,omitempty"`
	UserIDs        []sessions.UserID       `json:"userIds,omitempty"`
	MsgKey         string                  `json:"msgKey"`
	MsgParam       string                  `json:"msgParam"` // JSON in a string
}

// A private chat's conversation id is not valid here, so the person gets the message. The API has no idempotency key.
// key is that of the message.
func (d direct) send(ctx context.Context, to sessions.Target, m message) (key string, _ *chat.SendError) {
	if !d.robots.serves(to.RobotCode) {
		return "", &chat.SendError{After: request.WaitExhausted, Aside: true, Err: errOtherRobot}
	}
	form, param := "sampleMarkdown", any(markdownBody{m.title, m.withNames()})
	if to.File != nil {
		form, param = files.Message(*to.File)
	}
	text, err := request.Encode(param)
	if err != nil {
		return "", &chat.SendError{Permanent: true, Err: err}
	}
	body := apiBody{RobotCode: d.robots.codeOf(to.RobotCode), MsgKey: form, MsgParam: string(text)}
	call := openapi.Call{
		API: calls.GroupSend, Need: calls.Finish, Method: http.MethodPost,
		Path: "/v1.0/robot/groupMessages/send", Doing: "sending to the group",
	}
	if to.Scheduled {
		call.Need = calls.Reminder
		if failed := d.checkShare(ctx, to); failed != nil {
			return "", failed
		}
	}
	if to.ConversationType == sessions.Private {
		if to.StaffID == "" {
			return "", &chat.SendError{Permanent: true, Err: errors.New("no staff id to write to")}
		}
		call.API, call.Path, call.Doing = calls.PrivateSend, "/v1.0/robot/oToMessages/batchSend", "sending to the person"
		body.UserIDs = []sessions.UserID{to.StaffID}
	} else {
		body.ConversationID = to.ConversationID
	}
	call.Body = body
	a, failed := d.api.Do(ctx, call)
	if failed == nil {
		failed = d.judge.OpenAPI(to, a, call.Doing)
	}
	switch {
	case failed != nil:
		failed.Aside, failed.Gone = isBarred(a, failed), failed.Permanent && (a.IsGone() || a.Lists("invalidStaffIdList", to.StaffID))
	case to.Scheduled:
		if err := d.governor.CountShare(ctx, to.StaffID); err != nil {
			zerolog.Ctx(ctx).Debug().Err(err).Msg("Call of a schedule not counted for its person")
		}
	}
	return value.Clip(a.Body.Str("processQueryKey"), frame.MaxCarrier), failed
}

// checkShare refuses a person's schedules beyond their share of the month.
func (d direct) checkShare(ctx context.Context, to sessions.Target) *chat.SendError {
	err := d.governor.CheckShare(ctx, to.StaffID)
	if refused, ok := errors.AsType[*calls.RefusedError](err); ok {
		return &chat.SendError{After: min(refused.After, request.WaitExhausted), Aside: true, Err: fmt.Errorf("the share of a person's schedules: %w", err)}
	}
	if err != nil {
		return request.AsSendError(err)
	}
	return nil
}

// isBarred reports whether the application may not call at all for a time. Replies with a webhook are sent nevertheless.
func isBarred(a request.Answer, failed *chat.SendError) bool {
	class := a.Class()
	return calls.IsRefused(failed) || errors.Is(failed, openapi.ErrCredentials) || class == request.Denied || class == request.BadToken
}
