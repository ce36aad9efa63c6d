package dingtalk

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/calls"
	"ebb/sessions"
)

type class int

const (
	unknown    class = iota // The message is the likeliest cause.
	again                   // transient: the outbox backs off
	limited                 // too many messages: the conversation pauses
	busy                    // too many calls of the application: short pause
	exhausted               // the month's quota is used up
	denied                  // a permission is missing: an operator must act
	banned                  // this machine's address is blocked for minutes
	expired                 // the webhook expired: use the open API
	unsendable              // no retry will help
	badToken                // the access token is refused
)

const (
	waitBusy      = 2 * time.Second
	waitBanned    = 5 * time.Minute
	waitExhausted = time.Hour
	waitOperator  = 5 * time.Minute
	waitToken     = time.Minute
)

// Webhooks and old APIs use these errcode values.
var oldCodes = map[string]class{
	"-1":     again,
	"130101": limited, "410100": limited,
	"90018": busy, "90002": busy,
	"90020":  exhausted,
	"1111":   banned,
	"90030":  expired, // webhook quota: the open API has its own
	"300001": expired, "400101": expired,
	"400013": unsendable, "400102": unsendable, "400106": unsendable, // disbanded, robot disabled, robot not in the group
	"400105": unsendable, "40035": unsendable, "43004": unsendable, // malformed request
	"460101": unsendable, "101002": unsendable, // too long
	"40014": badToken, "42001": badToken,
}

// newCodes are words in an open API's code; the first match counts.
var newCodes = []struct {
	part  string
	class class
}{
	{"InvalidAuthentication", badToken},
	{"invalidParameter.token.invalid", badToken},
	{"ApiCountLimit", exhausted},
	{"QpsLimit", busy},
	{"QpmLimit", busy},
	{"send.too.fast", limited},
	{"send.byToken.tooFast", limited},
	{"too.many.", limited},
	{"contain.", unsendable},
	{"disbanded", unsendable},
	{"bot.stopped", unsendable},
	{"bot.forbidden", unsendable},
	{"org.notMatch", unsendable},
	{"openConversationId", unsendable},
	{"resource.not.found", unsendable},
	{"robot.oto.notExist", unsendable},
	{"notAllow.sendOTO", unsendable},
	{"invalidParameter.", unsendable},
	{"param.", unsendable}, // cards
	{"InvalidAction.NotFound", unsendable},
}

// goneCodes are words in the code of a person or a conversation that DingTalk does not know any more.
var goneCodes = []string{"disbanded", "robot.oto.notExist", "openConversationId", "resource.not.found", "org.notMatch", "taffId", "userId"}

func isGone(a answer) bool {
	code := a.body.Str("code")
	return slices.ContainsFunc(goneCodes, func(part string) bool { return strings.Contains(code, part) })
}

func classOld(code string) class {
	if c, ok := oldCodes[code]; ok {
		return c
	}
	if len(code) == 6 && strings.HasPrefix(code, "4301") { // unsafe link, text, picture, content
		return unsendable
	}
	return unknown
}

func classify(a answer) class {
	if sub := a.body.Str("sub_code", "subCode"); sub != "" && a.body.Str("errcode") == "88" {
		return classOld(sub)
	}
	if code := a.body.Str("errcode"); code != "" && code != "0" {
		return classOld(code)
	}
	if a.body.Str("status") == "1111" {
		return banned
	}
	code := a.body.Str("code")
	for _, n := range newCodes {
		if strings.Contains(code, n.part) {
			return n.class
		}
	}
	switch a.status {
	case http.StatusUnauthorized:
		return badToken
	case http.StatusTooManyRequests:
		return busy
	case http.StatusForbidden:
		return denied
	}
	if code == "" {
		return again
	}
	return unknown
}

// sendError turns the class of an answer into what the outbox does with the reply: wait, wait for the whole account, try another way,
// or give it up.
func (t *Transport) sendError(to sessions.Target, a answer, err error) *chat.SendError {
	switch classify(a) {
	case limited:
		return t.tooMany(to, err)
	case busy:
		t.counters.limited.Add(1)
		return &chat.SendError{After: waitBusy, Err: err}
	case exhausted:
		refused := &calls.RefusedError{Need: calls.Finish, Level: calls.Spent, Until: time.Now().Add(waitExhausted), After: waitExhausted}
		return &chat.SendError{After: waitExhausted, Err: fmt.Errorf("%w: %w", err, refused)}
	case denied:
		return &chat.SendError{After: waitOperator, Account: true, Err: err}
	case banned:
		return &chat.SendError{After: waitBanned, Account: true, Err: err}
	case badToken:
		return &chat.SendError{After: waitToken, Account: true, Err: err}
	case unsendable:
		return &chat.SendError{Permanent: true, Err: err}
	case unknown:
		return &chat.SendError{Refused: true, Err: err}
	}
	return &chat.SendError{Err: err}
}

// judgeWebhook reads the errcode at any HTTP status.
func (t *Transport) judgeWebhook(to sessions.Target, a answer) error {
	code := a.body.Str("errcode")
	if code == "0" {
		return nil
	}
	if c := classify(a); code == "" && (c == again || c == unknown) {
		return &chat.SendError{Maybe: true, Err: errors.New("posting to the session webhook: the answer has no errcode")}
	}
	if classify(a) == expired {
		return fmt.Errorf("%w: errcode %s", errNoWebhook, code)
	}
	return t.sendError(to, a, fmt.Errorf("posting to the session webhook: errcode %s", codeOf(a)))
}
