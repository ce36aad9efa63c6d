package config

import (
	"reflect"
	"regexp"
	"slices"
)

// refuseWritten refuses a secret or address with a variable as shells, batch files and other programs write it. It reads the text of the
// file alone: what a variable holds may have any form. No error shows it: a password may look like one.
func refuseWritten(path, text string, t reflect.Type) (problem string) {
	isAddress := t == reflect.TypeFor[DSN]() || t == reflect.TypeFor[Endpoint]() || slices.Contains(plainAddresses, withoutIndex(path))
	if isAddress && unbracedWithin.MatchString(text) || (isAddress || t == reflect.TypeFor[Secret]()) && unbraced.MatchString(text) {
		return "got the name of a variable in another form, want ${NAME}; a text that looks like one can come from a variable or a file"
	}
	return ""
}

// plainAddresses are not secret.
var plainAddresses = []string{
	"dingtalk.client_id", "dingtalk.api_base", "dingtalk.oapi_base", "admin.dingtalk_login.redirect_uri", "admin.dingtalk_login.authorize_url",
}

// unbracedWithin is the name of a variable in a part of an address.
var unbracedWithin = regexp.MustCompile(`[:/@=.]\$\(?[A-Z_][A-Z0-9_]+\)?(?:[:/@.?&]|$)`)

var unbraced = regexp.MustCompile(`^\s*(?:\$(?:env:)?[A-Za-z_]\w*|\$\([A-Za-z_]\w*\)|%[A-Za-z_]\w*%|\{\{.*\}\}|\{[A-Z_][A-Z0-9_]+\}|(?:env:|os\.environ/)[A-Z_][A-Z0-9_]*)\s*$`)
