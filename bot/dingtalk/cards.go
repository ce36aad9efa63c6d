package dingtalk

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/calls"
	"ebb/bot/dingtalk/card"
	"ebb/bot/dingtalk/frame"
	"ebb/bot/dingtalk/openapi"
	"ebb/bot/dingtalk/request"
	"ebb/bot/dingtalk/value"
	"ebb/sessions"
)

// cardCalls implement [card.API].
type cardCalls struct {
	api    *openapi.Client
	judge  *request.Judge
	secret request.Secret
	robots robots
}

var _ card.API = cardCalls{}

type cardBody struct {
	Template     string        `json:"cardTemplateId"`
	Track        string        `json:"outTrackId"`
	Callback     string        `json:"callbackType"`
	Data         cardData      `json:"cardData"`
	Space        string        `json:"openSpaceId"`
	GroupSpace   *cardSpace    `json:"imGroupOpenSpaceModel,omitempty"`
	GroupDeliver *cardDelivery `json:"imGroupOpenDeliverModel,omitempty"`
	RobotSpace   *cardSpace    `json:"imRobotOpenSpaceModel,omitempty"`
	RobotDeliver *cardDelivery `json:"imRobotOpenDeliverModel,omitempty"`
	IDs          int           `json:"userIdType"`
}

type cardData struct {
	Variables map[string]string `json:"cardParamMap"`
}

type cardSpace struct {
	Forward bool `json:"supportForward"`
}

type cardDelivery struct {
	Space    string             `json:"spaceType,omitempty"`
	Robot    sessions.RobotCode `json:"robotCode"`
	Mentions map[string]string  `json:"atUserIds,omitempty"` // names by staff id
}

const staffIDs = 1

// CreateCard implements [card.API].
func (k cardCalls) CreateCard(ctx context.Context, to sessions.Target, c card.New) (carrier string, err error) {
	robot := k.robots.codeOf(to.RobotCode)
	body := cardBody{Template: c.Template, Track: c.Track, Callback: "STREAM", Data: cardData{c.Variables}, IDs: staffIDs}
	if to.ConversationType == sessions.Private {
		if to.StaffID == "" {
			k.api.GiveBack(ctx, c.Reserved, calls.CardCreate)
			return "", &chat.SendError{Permanent: true, Err: fmt.Errorf("%w: no staff id", card.ErrUndelivered)}
		}
		body.Space = "dtv1.card//IM_ROBOT." + string(to.StaffID)
		body.RobotSpace, body.RobotDeliver = &cardSpace{true}, &cardDelivery{Space: "IM_ROBOT", Robot: robot}
	} else {
		body.Space = "dtv1.card//IM_GROUP." + string(to.ConversationID)
		body.GroupSpace, body.GroupDeliver = &cardSpace{true}, &cardDelivery{Robot: robot, Mentions: nicksOf(to.Mentions)}
	}
	const doing = "creating a card"
	a, failed := k.api.Do(ctx, openapi.Call{
		API: calls.CardCreate, Need: calls.Finish, Method: http.MethodPost, Path: "/v1.0/card/instances/createAndDeliver", Doing: doing,
		Body: body, Reserved: &c.Reserved, Within: c.Within,
	})
	if failed == nil {
		failed = k.judge.OpenAPI(to, a, doing)
	}
	if failed == nil {
		failed = k.denial(a, doing)
	}
	if failed != nil {
		return "", cardFailure(failed, a)
	}
	for _, v := range a.Body.Obj("result").List("deliverResults") {
		r, ok := v.(map[string]any)
		if ok && !value.ObjectOf(r).Flag("success") {
			return "", &chat.SendError{Permanent: true, Said: k.secret.Redact(value.ObjectOf(r).Str("errorMsg")), Err: fmt.Errorf("%s: %w", doing, card.ErrUndelivered)}
		}
		carrier = value.Clip(value.ObjectOf(r).Str("carrierId"), frame.MaxCarrier)
	}
	return carrier, nil
}

func nicksOf(people []sessions.Mention) map[string]string {
	var m message
	m.addPeople(people)
	if len(m.ids) == 0 {
		return nil
	}
	out := map[string]string{}
	for _, id := range m.ids {
		out[id] = id
		for _, p := range people {
			if name := safeNick(p.Nick); string(p.StaffID) == id && name != "" {
				out[id] = name
			}
		}
	}
	return out
}

type streamBody struct {
	Track    string `json:"outTrackId"`
	GUID     string `json:"guid"`
	Key      string `json:"key"`
	Content  string `json:"content"`
	Full     bool   `json:"isFull"`
	Finalize bool   `json:"isFinalize"`
	Error    bool   `json:"isError"`
}

// StreamCard implements [card.API].
func (k cardCalls) StreamCard(ctx context.Context, u card.Update) error {
	return k.callCard(ctx, openapi.Call{
		API: calls.CardStream, Path: "/v1.0/card/streaming", Doing: "updating a card", Reserved: &u.Reserved, Within: u.Within,
		Body: streamBody{
			Track: u.Track, GUID: u.ID, Key: u.Key, Content: u.Text, Full: true, Finalize: u.State == card.Finished, Error: u.State == card.Failed,
		},
	})
}

type variablesBody struct {
	Track   string      `json:"outTrackId"`
	Data    cardData    `json:"cardData"`
	Options cardOptions `json:"cardUpdateOptions"`
	IDs     int         `json:"userIdType"`
}

type cardOptions struct {
	ByKey bool `json:"updateCardDataByKey"`
}

// SetCard implements [card.API].
func (k cardCalls) SetCard(ctx context.Context, v card.Variables) error {
	return k.callCard(ctx, openapi.Call{
		API: calls.CardUpdate, Path: "/v1.0/card/instances", Doing: "setting variables of a card", Reserved: &v.Reserved,
		Body: variablesBody{Track: v.Track, Data: cardData{v.Values}, Options: cardOptions{true}, IDs: staffIDs},
	})
}

func (k cardCalls) callCard(ctx context.Context, c openapi.Call) error {
	c.Method, c.Need = http.MethodPut, calls.Finish
	a, failed := k.api.Do(ctx, c)
	if failed == nil {
		failed = k.judge.OpenAPI(sessions.Target{}, a, c.Doing)
	}
	if failed == nil {
		failed = k.denial(a, c.Doing)
	}
	if failed != nil {
		return cardFailure(failed, a)
	}
	return nil
}

// A 200 without success names no cause: another attempt may succeed.
func (k cardCalls) denial(a request.Answer, doing string) *chat.SendError {
	if !a.Body.Has("success") || a.Body.Flag("success") {
		return nil
	}
	return &chat.SendError{Said: k.secret.Redact(k.secret.Words(a), a.Token), Err: fmt.Errorf("%s: no success: %s", doing, a.Code())}
}

func cardFailure(failed *chat.SendError, a request.Answer) error {
	if a.Intact && a.Body.Str("code") != "" {
		failed.Maybe = false // refused, whatever the status
	}
	switch code := a.Body.Str("code"); {
	case strings.Contains(code, "cardAlreadyExist"):
		failed.Err = fmt.Errorf("%w: %w", card.ErrExists, failed.Err)
	case strings.Contains(code, "cardNotExist"), strings.Contains(code, "param.stream.outTrackId"):
		failed.Err = fmt.Errorf("%w: %w", card.ErrUnknown, failed.Err)
	case strings.Contains(code, "emplate"): // templateNotExist, templateUnpublished, cardTemplateIdEmpty
		failed.Err = fmt.Errorf("%w: %w", card.ErrTemplate, failed.Err)
	case strings.Contains(code, "openSpaceId"):
		failed.Err = fmt.Errorf("%w: %w", card.ErrUndelivered, failed.Err)
	case code == "unknownError": // the answer for a variable that the template lacks
		failed.Err = fmt.Errorf("%w: %w", card.ErrVariable, failed.Err)
	case a.Class() == request.Denied:
		failed.Err = fmt.Errorf("%w: %w", card.ErrPermission, failed.Err)
	}
	return failed
}
