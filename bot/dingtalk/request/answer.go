package request

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"ebb/bot/dingtalk/value"
	"ebb/sessions"
)

// Answer is what DingTalk answered.
type Answer struct {
	Status int
	Body   value.Object
	Intact bool   // Body is a whole JSON object, and not nil
	Token  string // used access token, to keep it out of errors
}

// Code is the code without the message, which may repeat what people wrote, for logs and tables.
func (a Answer) Code() string {
	if !a.Intact {
		return "no JSON answer"
	}
	code, said := a.Body.Str("code", "errcode", "status"), a.Body.Str("message", "errmsg")
	if !codeLike.MatchString(code) {
		code = "no code"
	}
	if said == "" {
		return code
	}
	sum := sha256.Sum256([]byte(said))
	return fmt.Sprintf("%s (%d bytes, hash %s)", code, len(said), hex.EncodeToString(sum[:4]))
}

var codeLike = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// Lists reports whether a list of the answer has a person.
func (a Answer) Lists(list string, id sessions.UserID) bool {
	for _, v := range a.Body.List(list) {
		if id != "" && value.String(v) == string(id) {
			return true
		}
	}
	return false
}

// Secret is the application's. No text of DingTalk that is logged or shown may repeat it.
type Secret string

// Words are the code and the beginning of the message, for answers to requests without words of people.
func (s Secret) Words(a Answer) string {
	if !a.Intact {
		return "no JSON answer"
	}
	code := a.Body.Str("code", "errcode", "status")
	return strings.TrimSpace(s.Redact(code + " " + value.OneLine(a.Body.Str("message", "errmsg"))))
}

// Redact shortens an external text and removes secrets: this one, and those given.
func (s Secret) Redact(text string, secrets ...string) string {
	for _, secret := range append(secrets, string(s)) {
		if len(secret) >= 4 {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	return value.Clip(text, 200)
}
