package mcp

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"ebb/sessions/redact"
)

const maxFault = 300

// faultOf shortens an error for operators, without secrets: addresses and output of programs may have some.
func (s Server) faultOf(err error) string {
	if err == nil {
		return ""
	}
	return cut(redact.Secrets(s.mask(oneLine(err.Error()))), maxFault)
}

const (
	masked    = "***"
	minSecret = 6
)

// mask replaces the configured address, headers, variables, and arguments that are secrets.
func (s Server) mask(text string) string {
	if at, err := url.Parse(s.URL); err == nil && s.URL != "" {
		text = strings.ReplaceAll(text, s.URL, at.Scheme+"://"+at.Host)
		if len(at.RawQuery) >= minSecret {
			text = strings.ReplaceAll(text, at.RawQuery, masked)
		}
	}
	for _, a := range s.secretArgs() {
		text = strings.ReplaceAll(text, a, masked)
	}
	for _, values := range []map[string]string{s.Headers, s.Env} {
		for _, v := range values {
			for _, word := range append([]string{v}, strings.Fields(v)...) { // the token of a header is secret without "Bearer", too
				if len(word) >= minSecret && word != "Bearer" {
					text = strings.ReplaceAll(text, word, masked)
				}
			}
		}
	}
	return text
}

// conceal masks values with the names of secrets, in text that people and the model see. Other values, such as directories, are needed there.
func (s Server) conceal(text string) string {
	secret := Server{Args: s.Args, Headers: maps.Clone(s.Headers), Env: maps.Clone(s.Env)}
	for _, values := range []map[string]string{secret.Headers, secret.Env} {
		maps.DeleteFunc(values, func(name, _ string) bool { return !secretName.MatchString(name) })
	}
	if strings.Contains(s.URL, "?") {
		secret.URL = s.URL
	}
	return secret.mask(text)
}

// secretArgs are addresses with a password, and the values of options with the names of secrets: --token X and --token=X.
func (s Server) secretArgs() (secrets []string) {
	named := false
	for _, a := range s.Args {
		option, value, joined := strings.Cut(a, "=")
		isOption := strings.HasPrefix(a, "-") && secretName.MatchString(option)
		at, err := url.Parse(a)
		switch {
		case isOption && joined:
			secrets = append(secrets, value)
		case named, err == nil && at.User != nil:
			secrets = append(secrets, a)
		}
		named = isOption && !joined
	}
	return slices.DeleteFunc(secrets, func(a string) bool { return len(a) < minSecret })
}

var secretName = regexp.MustCompile(`(?i)key|token|secret|pass|auth|cookie|credential`)
