package request

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// Class is the kind of an answer: who has to act, and when.
type Class int

// The classes.
const (
	Unknown      Class = iota // The message is the likeliest cause.
	Again                     // transient: the outbox backs off
	Limited                   // too many messages: the conversation pauses
	Busy                      // too many calls of the application: short pause
	Exhausted                 // the month's quota is used up
	Denied                    // a permission is missing: an operator must act
	Banned                    // this machine's address is blocked for minutes
	Expired                   // the webhook expired: use the open API
	Unsendable                // no retry will help
	RefusedWords              // no retry of the same words will help
	BadToken                  // the access token is refused
)

// The waits after an answer, by its class.
const (
	WaitBusy      = 2 * time.Second
	WaitBanned    = 5 * time.Minute
	WaitExhausted = time.Hour
	WaitOperator  = 5 * time.Minute
	WaitToken     = time.Minute
)

// Webhooks and old APIs use these errcode values.
var oldCodes = map[string]Class{
	"-1":     Again,
	"130101": Limited, "410100": Limited,
	"90018": Busy, "90002": Busy,
	"90020":  Exhausted,
	"1111":   Banned,
	"90030":  Expired, // webhook quota: the open API has its own
	"300001": Expired, "400101": Expired,
	"400013": Unsendable, "400102": Unsendable, "400106": Unsendable, // disbanded, robot disabled, robot not in the group
	"400105": Unsendable, "40035": Unsendable, "43004": Unsendable, // malformed request
	"460101": RefusedWords, "101002": RefusedWords, // too long
	"40014": BadToken, "42001": BadToken,
}

// newCodes are words in an open API's code; the first match counts.
var newCodes = []struct {
	part  string
	class Class
}{
	{"InvalidAuthentication", BadToken},
	{"invalidParameter.token.invalid", BadToken},
	{"ApiCountLimit", Exhausted},
	{"QpsLimit", Busy},
	{"QpmLimit", Busy},
	{"send.too.fast", Limited},
	{"send.byToken.tooFast", Limited},
	{"too.many.", Limited},
	{"contain.", Unsendable},
	{"disbanded", Unsendable},
	{"bot.stopped", Unsendable},
	{"bot.forbidden", Unsendable},
	{"org.notMatch", Unsendable},
	{"openConversationId", Unsendable},
	{"resource.not.found", Unsendable},
	{"robot.oto.notExist", Unsendable},
	{"notAllow.sendOTO", Unsendable},
	{"invalidParameter.", Unsendable},
	{"param.", Unsendable}, // cards
	{"InvalidAction.NotFound", Unsendable},
}

// goneCodes are words in the code of a person or a conversation that DingTalk does not know any more.
var goneCodes = []string{"disbanded", "robot.oto.notExist", "openConversationId", "resource.not.found", "org.notMatch", "taffId", "userId"}

// IsGone reports that DingTalk does not know the person or the conversation any more.
func (a Answer) IsGone() bool {
	code := a.Body.Str("code")
	return slices.ContainsFunc(goneCodes, func(part string) bool { return strings.Contains(code, part) })
}

func classOld(code string) Class {
	if c, ok := oldCodes[code]; ok {
		return c
	}
	if len(code) == 6 && strings.HasPrefix(code, "4301") { // unsafe link, text, picture, content
		return RefusedWords
	}
	return Unknown
}

// Class reads the codes of all generations of APIs, then the HTTP status.
func (a Answer) Class() Class {
	if sub := a.Body.Str("sub_code", "subCode"); sub != "" && a.Body.Str("errcode") == "88" {
		return classOld(sub)
	}
	if code := a.Body.Str("errcode"); code != "" && code != "0" {
		return classOld(code)
	}
	if a.Body.Str("status") == "1111" {
		return Banned
	}
	code := a.Body.Str("code")
	for _, n := range newCodes {
		if strings.Contains(code, n.part) {
			return n.class
		}
	}
	switch a.Status {
	case http.StatusUnauthorized:
		return BadToken
	case http.StatusTooManyRequests:
		return Busy
	case http.StatusForbidden:
		return Denied
	}
	if code == "" {
		return Again
	}
	return Unknown
}
