package openai

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ebb/sessions/llm"
	"ebb/sessions/rules"
)

//go:embed rules.tsv
var ruleLines string

var (
	ruleFile = rules.Read(ruleLines)

	saysOverflow = said("overflow", "overflowCode")
	saysAnswer   = said("answer", "")
	saysOversize = said("oversize", "")
	saysFiltered = said("filtered", "filteredCode")
	saysUnpaid   = said("unpaid", "unpaidCode")
	saysRate     = said("rate", "")
	saysDenied   = said("denied", "deniedCode")
	saysMissing  = said("missing", "missingCode")
	saysBusy     = said("busy", "busyCode")
	keyLike      = ruleFile.Regexp("key") // The group label stays in a masked text.
)

// said judges an error by the list about all its words, and by the list about its codes alone, if any.
func said(list, codes string) func(*providerError) bool {
	words, ofCodes := ruleFile.Regexp(list), (func() *regexp.Regexp)(nil)
	if codes != "" {
		ofCodes = ruleFile.Regexp(codes)
	}
	return func(e *providerError) bool {
		return ofCodes != nil && ofCodes().MatchString(strings.Join(e.codes, " ")) || words().MatchString(e.joinWords())
	}
}

// providerError is a provider's own account of a failure.
type providerError struct {
	status  int      // 0: inside a stream
	codes   []string // codes and types
	message string
}

// Error identifies the provider's text without its words: those may repeat the request. Equal texts have equal hashes.
func (e *providerError) Error() string {
	var known []string
	for _, c := range e.codes {
		if codeLike.MatchString(c) && !slices.Contains(known, c) {
			known = append(known, c)
		}
	}
	text := "the provider answered " + cmp.Or(strings.Join(known, " "), "without a code")
	if e.message == "" {
		return text
	}
	return fmt.Sprintf("%s (%d bytes, hash %s)", text, len(e.message), shortHash(e.message))
}

var codeLike = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

func (e *providerError) joinWords() string {
	return strings.TrimPrefix(strings.Join(e.codes, " ")+": "+e.message, ": ")
}

// The members of an error that name it, that describe it, and that hold it. Others, such as "input", repeat the request.
var (
	codeKeys = []string{"code", "type", "status", "errcode", "error_code", "err_code", "status_code", "param"}
	wordKeys = []string{"message", "msg", "error_msg", "errmsg", "err_msg", "status_msg", "detail", "title", "reason", "raw"}
	partKeys = []string{"error", "errors", "base_resp", "response", "innererror", "metadata", "header"}
)

// maxDepth bounds the levels of an error: proxies wrap the errors of their providers.
const maxDepth = 6

// parseFailure reads any shape: members are known by their names, wherever they are. Other texts are the message.
func parseFailure(status int, body []byte) *providerError {
	e := &providerError{status: status}
	var v any
	if !decodeNumbers(body, &v) {
		e.message = strings.TrimSpace(string(body))
		return e
	}
	e.readValue(v, 0)
	return e
}

func decodeNumbers(text []byte, v any) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(v) == nil
}

func (e *providerError) readValue(v any, depth int) {
	switch v := v.(type) {
	case string:
		e.readText(v, depth)
	case []any:
		for _, one := range v[:min(len(v), maxDepth)] {
			if depth < maxDepth {
				e.readValue(one, depth+1)
			}
		}
	case map[string]any:
		if depth >= maxDepth {
			return
		}
		members := map[string]any{}
		for k, one := range v {
			members[strings.ToLower(k)] = one
		}
		e.readMembers(members, depth)
	}
}

func (e *providerError) readMembers(members map[string]any, depth int) {
	for _, k := range codeKeys {
		switch c := members[k].(type) {
		case string:
			e.addCode(c)
		case json.Number:
			e.addCode(c.String())
		}
	}
	if loc, ok := members["loc"].([]any); ok { // the place of a field, as in ["body", "messages", 0, "name"]
		var path []string
		for _, step := range loc {
			path = append(path, fmt.Sprint(step))
		}
		e.addWords(strings.Join(path, "."))
	}
	for _, k := range slices.Concat(partKeys, wordKeys) {
		e.readValue(members[k], depth+1)
	}
}

// readText reads a text that is an error of its own, as proxies send it.
func (e *providerError) readText(text string, depth int) {
	var v any
	if text = strings.TrimSpace(text); depth < maxDepth && strings.HasPrefix(text, "{") && decodeNumbers([]byte(text), &v) {
		e.readValue(v, depth+1)
		return
	}
	e.addWords(text)
}

func (e *providerError) addCode(code string) {
	if code = strings.TrimSpace(code); code != "" && !slices.Contains(e.codes, code) {
		e.codes = append(e.codes, code)
	}
}

func (e *providerError) addWords(text string) {
	if text != "" && !strings.Contains(e.message, text) {
		e.message = strings.TrimSpace(e.message + " " + text)
	}
}

// forgetText removes what the request said from the message: words of people must not decide the class.
func (e *providerError) forgetText(text string) {
	if text = strings.TrimSpace(text); len(text) > 3 {
		e.message = strings.ReplaceAll(e.message, text, "…")
	}
}

// statusCode is the HTTP status, or the one that an error inside an answer names; 0 for none.
func (e *providerError) statusCode() int {
	if e.status != 0 {
		return e.status
	}
	for _, c := range e.codes {
		if n, err := strconv.Atoi(c); err == nil && n >= 400 && n < 600 {
			return n
		}
	}
	return 0
}

// page finds the page of a web server, whose words are not the provider's.
var page = regexp.MustCompile(`(?i)^<(!doctype|html|head|body|\?xml)`)

// classOf reads the words first: providers send an empty account as too many requests, and refused content as a broken
// server. The status decides where the words say nothing.
func (e *providerError) classOf() llm.ErrorClass {
	if page.MatchString(e.message) {
		return e.classOfStatus()
	}
	s := e.statusCode()
	switch {
	case saysUnpaid(e) && !saysRate(e):
		return llm.Unpaid
	case saysFiltered(e):
		return llm.Refused
	case saysOversize(e):
		return llm.Overflow
	case s == http.StatusUnauthorized || s == http.StatusPaymentRequired || s == http.StatusTooManyRequests:
		return e.classOfStatus()
	case saysOverflow(e) && !saysAnswer(e):
		return llm.Overflow
	case s >= http.StatusInternalServerError: // a gateway in trouble writes of keys and models too
		return e.classOfStatus()
	case saysMissing(e):
		return llm.Missing
	case saysDenied(e):
		return llm.Denied
	case saysBusy(e) && s != http.StatusRequestTimeout:
		return llm.Busy
	}
	return e.classOfStatus()
}

func (e *providerError) classOfStatus() llm.ErrorClass {
	switch s := e.statusCode(); {
	case s == http.StatusPaymentRequired:
		return llm.Unpaid
	case s == http.StatusUnauthorized || s == http.StatusForbidden:
		return llm.Denied
	case s == http.StatusRequestTimeout || s == http.StatusGatewayTimeout:
		return llm.Timeout
	case s == http.StatusConflict || s == http.StatusTooEarly || s == http.StatusTooManyRequests || s >= 500:
		return llm.Busy
	case s == http.StatusNotFound || s == http.StatusMethodNotAllowed || s == http.StatusGone:
		return llm.Missing
	case s == http.StatusRequestEntityTooLarge:
		return llm.Overflow
	case s == http.StatusUnavailableForLegalReasons:
		return llm.Refused
	case s == 0:
		return llm.Busy
	}
	return llm.Malformed
}
