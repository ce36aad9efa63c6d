package dingtalk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/calls"
	"ebb/bot/dingtalk/files"
	"ebb/bot/dingtalk/frame"
	"ebb/bot/dingtalk/reaction"
	"ebb/bot/dingtalk/value"
	"ebb/sessions"
)

type apiBody struct {
	RobotCode      sessions.RobotCode      `json:"robotCode"`
	ConversationID sessions.ConversationID `json:"openConversationId,omitempty"`
	UserIDs        []sessions.UserID       `json:"userIds,omitempty"`
	MsgKey         string                  `json:"msgKey"`
	MsgParam       string                  `json:"msgParam"` // JSON in a string
}

// A private chat's conversation id is not valid here, so the person gets the message. The API has no idempotency key.
// key is that of the message.
func (t *Transport) sendOpenAPI(ctx context.Context, to sessions.Target, m message) (key string, _ *chat.SendError) {
	if !t.config.serves(to.RobotCode) {
		return "", &chat.SendError{After: waitExhausted, Aside: true, Err: errOtherRobot}
	}
	form, param := "sampleMarkdown", any(markdownBody{m.title, m.withNames()})
	if to.File != nil {
		form, param = files.Message(*to.File)
	}
	text, err := encode(param)
	if err != nil {
		return "", &chat.SendError{Permanent: true, Err: err}
	}
	body := apiBody{RobotCode: to.RobotCode, MsgKey: form, MsgParam: string(text)}
	if body.RobotCode == "" {
		body.RobotCode = t.config.robotCode()
	}
	call := apiCall{
		api: calls.GroupSend, need: calls.Finish, method: http.MethodPost,
		path: "/v1.0/robot/groupMessages/send", doing: "sending to the group",
	}
	if to.Scheduled {
		call.need = calls.Reminder
		if failed := t.checkShare(ctx, to); failed != nil {
			return "", failed
		}
	}
	if to.ConversationType == sessions.Private {
		if to.StaffID == "" {
			return "", &chat.SendError{Permanent: true, Err: errors.New("no staff id to write to")}
		}
		call.api, call.path, call.doing = calls.PrivateSend, "/v1.0/robot/oToMessages/batchSend", "sending to the person"
		body.UserIDs = []sessions.UserID{to.StaffID}
	} else {
		body.ConversationID = to.ConversationID
	}
	call.body = body
	a, failed := t.callAPI(ctx, call)
	if failed == nil {
		failed = t.judgeAPI(to, a, call.doing)
	}
	switch {
	case failed != nil:
		failed.Aside, failed.Gone = isBarred(a, failed), failed.Permanent && (isGone(a) || listsPerson(a.body, "invalidStaffIdList", to.StaffID))
	case to.Scheduled:
		if err := t.calls.CountShare(ctx, to.StaffID); err != nil {
			zerolog.Ctx(ctx).Debug().Err(err).Msg("Call of a schedule not counted for its person")
		}
	}
	return value.Clip(a.body.Str("processQueryKey"), frame.MaxCarrier), failed
}

// checkShare refuses a person's schedules beyond their share of the month.
func (t *Transport) checkShare(ctx context.Context, to sessions.Target) *chat.SendError {
	err := t.calls.CheckShare(ctx, to.StaffID)
	if refused, ok := errors.AsType[*calls.RefusedError](err); ok {
		return &chat.SendError{After: min(refused.After, waitExhausted), Aside: true, Err: fmt.Errorf("the share of a person's schedules: %w", err)}
	}
	if err != nil {
		return asSendError(err)
	}
	return nil
}

// isBarred reports whether the application may not call at all for a time. Replies with a webhook are sent nevertheless.
func isBarred(a answer, failed *chat.SendError) bool {
	class := classify(a)
	return calls.IsRefused(failed) || errors.Is(failed, ErrCredentials) || class == denied || class == badToken
}

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
func (t *Transport) SetReaction(ctx context.Context, m reaction.Mark) error {
	return t.callReaction(ctx, calls.Reaction, "/v1.0/robot/emotion/reply", "setting a reaction", m)
}

// RemoveReaction implements [reaction.API].
func (t *Transport) RemoveReaction(ctx context.Context, m reaction.Mark) error {
	return t.callReaction(ctx, calls.ReactionRecall, "/v1.0/robot/emotion/recall", "removing a reaction", m)
}

func reactionName(lang string) string {
	if lang == "en" {
		return "🤔Thinking"
	}
	return "🤔思考中"
}

// callReaction uses calls that were reserved before. A refusal for lack of a permission is permanent, so that the month's calls are
// not spent on it.
func (t *Transport) callReaction(ctx context.Context, api calls.API, path, doing string, m reaction.Mark) error {
	name := reactionName(m.Lang)
	body := reactionBody{
		RobotCode: m.Robot, MessageID: m.Message, ConversationID: m.Conversation, Type: 2, Name: name,
		Text: reactionText{ID: "2659900", Name: name, Text: name, Background: "im_bg_1"},
	}
	if body.RobotCode == "" {
		body.RobotCode = t.config.robotCode()
	}
	a, failed := t.callAPI(ctx, apiCall{api: api, need: calls.Finish, method: http.MethodPost, path: path, doing: doing, body: body, reserved: &m.Reserved})
	if failed == nil {
		failed = t.judgeAPI(sessions.Target{}, a, doing) // its rate is no message's
	}
	if failed == nil {
		return nil
	}
	if a.intact && a.body.Str("code") != "" {
		failed.Maybe = false // refused, whatever the status
	}
	if classify(a) == denied {
		failed.Permanent = true // a lack of permission is not worth more calls
	}
	return failed
}

type apiCall struct {
	api    calls.API
	need   calls.Need
	method string
	path   string
	doing  string // named in errors
	// reserved counts the first attempt; nil: not counted yet.
	reserved *calls.Reservation
	within   time.Duration // for the request; 0: that of all requests
	old      bool          // a call of the old API, which has the token in the address: path ends with a query
	body     any           // JSON, or a [files.Form]
}

// callAPI renews a refused token once. Each attempt is counted before it is made.
func (t *Transport) callAPI(ctx context.Context, c apiCall) (answer, *chat.SendError) {
	for try := 0; ; try++ {
		token, err := t.tokens.tokenInForce(ctx)
		if err != nil {
			if c.reserved != nil {
				t.giveBack(ctx, *c.reserved, c.api)
			}
			failed := &chat.SendError{Silent: isSilence(err), Err: fmt.Errorf("%s: %w", c.doing, err)}
			if errors.Is(err, ErrCredentials) {
				failed.After, failed.Account = waitToken, true
			}
			return answer{}, failed
		}
		counted, failed := t.reserveCall(ctx, c)
		c.reserved = nil
		if failed != nil {
			return answer{}, failed
		}
		one, stop := withTimeout(ctx, c.within)
		address, header := t.config.APIBase+c.path, http.Header{"X-Acs-Dingtalk-Access-Token": {token}}
		if c.old {
			address, header = t.config.OAPIBase+c.path+"&access_token="+url.QueryEscape(token), nil
		}
		a, err := t.sendBody(one, c.method, address, header, c.body)
		stop()
		if err != nil {
			if errors.Is(err, errUnsent) {
				t.giveBack(ctx, counted, c.api)
			}
			return answer{}, lostOnTheWay(c.doing, err)
		}
		if a.status == http.StatusOK && a.body.Str("errcode", "code") == "" {
			a.token = token
			return a, nil
		}
		switch classify(a) {
		case busy:
			t.calls.Pause(c.api, waitBusy)
			t.giveBack(ctx, counted, c.api)
		case exhausted:
			if err := t.calls.Exhaust(ctx, waitExhausted); err != nil {
				zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to store that DingTalk refuses API calls")
			}
		case badToken:
			if try == 0 {
				t.tokens.dropToken(ctx, token)
				continue
			}
		}
		a.token = token
		return a, nil
	}
}

func (t *Transport) reserveCall(ctx context.Context, c apiCall) (calls.Reservation, *chat.SendError) {
	var counted calls.Reservation
	var err error
	if c.reserved != nil {
		counted = *c.reserved
	} else {
		counted, err = t.calls.Reserve(ctx, c.need, c.api)
	}
	if refused, ok := errors.AsType[*calls.RefusedError](err); ok {
		return counted, &chat.SendError{After: min(refused.After, waitExhausted), Err: fmt.Errorf("%s: %w", c.doing, err)}
	}
	if err != nil {
		return counted, &chat.SendError{Err: fmt.Errorf("%s: %w", c.doing, err)}
	}
	if err := t.calls.Wait(ctx, c.api); err != nil {
		t.giveBack(ctx, counted, c.api)
		return counted, &chat.SendError{After: time.Second, Err: fmt.Errorf("%s: %w", c.doing, err)}
	}
	return counted, nil
}

// giveBack returns a call that DingTalk did not count, also after the end of ctx.
func (t *Transport) giveBack(ctx context.Context, counted calls.Reservation, api calls.API) {
	one, stop := context.WithTimeout(context.WithoutCancel(ctx), t.timing.request)
	defer stop()
	if err := counted.Return(one, api); err != nil {
		zerolog.Ctx(ctx).Debug().Err(err).Msg("Failed to return a counted API call")
	}
}

// A success may list an unreachable person.
func (t *Transport) judgeAPI(to sessions.Target, a answer, doing string) *chat.SendError {
	said, code := codeOf(a), a.body.Str("errcode", "code")
	switch {
	case a.status >= 500 || mayHaveArrived(a.status):
		return &chat.SendError{Maybe: mayHaveArrived(a.status), Err: fmt.Errorf("%s: status %d: %s", doing, a.status, said)}
	case a.status == http.StatusOK && !a.intact:
		return &chat.SendError{Maybe: true, Err: fmt.Errorf("%s: the answer broke off", doing)}
	case a.status != http.StatusOK || code != "" && code != "0":
		failed := t.sendError(to, a, fmt.Errorf("%s: status %d: %s", doing, a.status, said))
		failed.Said = t.config.redactText(t.codeWords(a), a.token)
		return failed
	case a.body.Has("status") && classify(a) == banned:
		return &chat.SendError{After: waitBanned, Account: true, Err: fmt.Errorf("%s: %s", doing, said)}
	}
	if listsPerson(a.body, "invalidStaffIdList", to.StaffID) {
		return &chat.SendError{Permanent: true, Err: fmt.Errorf("%s: DingTalk knows no such person", doing)}
	}
	if listsPerson(a.body, "flowControlledStaffIdList", to.StaffID) {
		return t.tooMany(to, fmt.Errorf("%s: the person gets too many messages", doing))
	}
	return nil
}

func listsPerson(o value.Object, list string, id sessions.UserID) bool {
	for _, v := range o.List(list) {
		if id != "" && value.String(v) == string(id) {
			return true
		}
	}
	return false
}

type downloadBody struct {
	Code  string             `json:"downloadCode"`
	Robot sessions.RobotCode `json:"robotCode"`
}

// Download implements [chat.Files]. A picture has two codes; DingTalk has been seen to refuse one of them.
func (t *Transport) Download(ctx context.Context, robot sessions.RobotCode, a sessions.Attachment, to *os.File, limit int64) error {
	if !t.config.serves(robot) {
		return &chat.FileError{Fault: sessions.MediaExpired, Err: errOtherRobot}
	}
	return t.files.Download(ctx, []string{a.Code, a.Other}, to, limit, func(ctx context.Context, code string) (string, *chat.FileError) {
		return t.addressOf(ctx, cmp.Or(robot, t.config.robotCode()), code)
	})
}

const doingDownload = "asking for a file's address"

func (t *Transport) addressOf(ctx context.Context, robot sessions.RobotCode, code string) (string, *chat.FileError) {
	a, failed := t.callAPI(ctx, apiCall{
		api: calls.Download, need: calls.Finish, method: http.MethodPost, path: "/v1.0/robot/messageFiles/download", doing: doingDownload,
		body: downloadBody{code, robot},
	})
	if failed != nil {
		fault := sessions.MediaUnavailable
		if calls.IsRefused(failed) {
			fault = sessions.MediaNoCalls
		}
		return "", &chat.FileError{Fault: fault, Err: failed}
	}
	said := a.body.Str("code")
	switch address := a.body.Str("downloadUrl"); {
	case a.status == http.StatusOK && address != "":
		return address, nil
	case a.status >= 400 && a.status < 500 && (strings.Contains(said, "downloadCode") || strings.Contains(said, "robotCode.auth")):
		return "", &chat.FileError{Fault: sessions.MediaExpired, Err: fmt.Errorf("%s: %s", doingDownload, codeOf(a))}
	case classify(a) == exhausted:
		return "", &chat.FileError{Fault: sessions.MediaNoCalls, Err: fmt.Errorf("%s: %s", doingDownload, codeOf(a))}
	}
	return "", &chat.FileError{Fault: sessions.MediaUnavailable, Err: fmt.Errorf("%s: status %d: %s", doingDownload, a.status, codeOf(a))}
}

// Upload implements [chat.Uploader], by the old API.
func (t *Transport) Upload(ctx context.Context, robot sessions.RobotCode, f sessions.File) (string, error) {
	if !t.config.serves(robot) {
		return "", &chat.SendError{Permanent: true, Err: errOtherRobot}
	}
	form, err := files.FormOf(f)
	if err != nil {
		return "", &chat.SendError{Permanent: true, Err: err}
	}
	const doing = "uploading a file"
	a, failed := t.callAPI(ctx, apiCall{
		api: calls.Upload, need: calls.Card, // as a card: the message behind it takes one more, and answers without a webhook come first
		method: http.MethodPost, path: "/media/upload?type=" + string(f.Kind), doing: doing, old: true, body: form,
	})
	if failed == nil {
		failed = t.judgeAPI(sessions.Target{}, a, doing)
	}
	media := a.body.Str("media_id", "mediaId")
	switch {
	case failed != nil:
		failed.Aside, failed.Maybe = isBarred(a, failed), false // people see nothing of it
		return "", failed
	case media == "":
		return "", &chat.SendError{Err: fmt.Errorf("%s: the answer has no id", doing)}
	}
	return media, nil
}
