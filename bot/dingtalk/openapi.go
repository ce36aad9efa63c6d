package dingtalk

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"ebb/bot/chat"
	"ebb/sessions"
)

type apiBody struct {
	RobotCode      sessions.RobotCode      `json:"robotCode"`
	ConversationID sessions.ConversationID `json:"openConversationId,omitempty"`
	UserIDs        []sessions.UserID       `json:"userIds,omitempty"`
	MsgKey         string                  `json:"msgKey"`
	MsgParam       string                  `json:"msgParam"` // JSON in a string
}

// sendOpenAPI sends one part through the open API: to the group, or to the person of a private chat, whose conversation
// id is not valid there. The API has no idempotency key.
func (t *Transport) sendOpenAPI(ctx context.Context, to sessions.Target, m message) *chat.SendError {
	param, err := encode(markdownBody{m.title, m.naming()})
	if err != nil {
		return &chat.SendError{Permanent: true, Err: err}
	}
	body := apiBody{RobotCode: to.RobotCode, MsgKey: "sampleMarkdown", MsgParam: string(param)}
	if body.RobotCode == "" {
		body.RobotCode = t.robot()
	}
	path, doing := "/v1.0/robot/groupMessages/send", "sending to the group"
	if to.ConversationType == sessions.Private {
		if to.StaffID == "" {
			return &chat.SendError{Permanent: true, Err: errors.New("no staff id to write to")}
		}
		path, doing = "/v1.0/robot/oToMessages/batchSend", "sending to the person"
		body.UserIDs = []sessions.UserID{to.StaffID}
	} else {
		body.ConversationID = to.ConversationID
	}
	a, failed := t.callAPI(ctx, path, doing, body)
	if failed != nil {
		return failed
	}
	return t.judgeAPI(to, a, doing)
}

// callAPI makes a call with the access token, and renews a refused token once.
func (t *Transport) callAPI(ctx context.Context, path, doing string, body any) (answer, *chat.SendError) {
	for try := 0; ; try++ {
		token, err := t.tokens.get(ctx)
		if errors.Is(err, errCredentials) {
			return answer{}, &chat.SendError{After: waitToken, Err: fmt.Errorf("%s: %w", doing, err)}
		}
		if err != nil {
			return answer{}, &chat.SendError{Err: fmt.Errorf("%s: %w", doing, err)}
		}
		if err := t.api.Wait(ctx); err != nil {
			return answer{}, &chat.SendError{After: time.Second, Err: fmt.Errorf("%s: waiting for a free call: %w", doing, err)}
		}
		a, err := t.post(ctx, t.config.APIBase+path, http.Header{"X-Acs-Dingtalk-Access-Token": {token}}, body)
		if err != nil {
			return answer{}, lostOnTheWay(doing, err)
		}
		if try > 0 || a.status == http.StatusOK && a.body.str("errcode", "code") == "" || classify(a) != badToken {
			a.token = token
			return a, nil
		}
		t.tokens.reject(ctx, token)
	}
}

// judgeAPI reads an open API's answer. A success may list an unreachable person.
func (t *Transport) judgeAPI(to sessions.Target, a answer, doing string) *chat.SendError {
	said := t.redact(t.words(a), a.token)
	code := a.body.str("errcode", "code")
	switch {
	case a.status >= 500 || mayHaveArrived(a.status):
		return &chat.SendError{Maybe: mayHaveArrived(a.status), Err: fmt.Errorf("%s: status %d: %s", doing, a.status, said)}
	case a.status == http.StatusOK && !a.intact:
		return &chat.SendError{Maybe: true, Err: fmt.Errorf("%s: the answer broke off", doing)}
	case a.status != http.StatusOK || code != "" && code != "0":
		return t.failure(to, a, fmt.Errorf("%s: status %d: %s", doing, a.status, said))
	case a.body.has("status") && classify(a) == banned:
		return &chat.SendError{After: waitBanned, Err: fmt.Errorf("%s: %s", doing, said)}
	}
	if names(a.body, "invalidStaffIdList", to.StaffID) {
		return &chat.SendError{Permanent: true, Err: fmt.Errorf("%s: DingTalk knows no such person", doing)}
	}
	if names(a.body, "flowControlledStaffIdList", to.StaffID) {
		return t.tooMany(to, fmt.Errorf("%s: the person gets too many messages", doing))
	}
	return nil
}

func names(o object, list string, id sessions.UserID) bool {
	for _, v := range o.list(list) {
		if id != "" && asString(v) == string(id) {
			return true
		}
	}
	return false
}
