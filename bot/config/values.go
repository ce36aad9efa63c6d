package config

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"ebb/bot/config/strict"
)

const maxName = 200

// wantName warns of a text that no one types or sees as it is.
func wantName(k *strict.Source, path, value, what string) {
	k.Required(path, value, what)
	stray := strings.TrimSpace(value) != value || strings.ContainsFunc(value, unicode.IsControl) || utf8.RuneCountInString(value) > maxName
	k.Advise(!stray, path, "has blanks at its ends, line breaks, or more than %d characters", maxName)
}

func isNoKey(r rune) bool { return r <= ' ' || r > '~' }

// wantCredential refuses a key that no HTTP header can carry, or that was copied with the words around it. The error has no part of it.
func wantCredential(k *strict.Source, path, value, what string) {
	wantSecret(k, path, value, what)
	k.Want(!strings.ContainsFunc(value, isNoKey), path, "a text with blanks or other letters than ASCII", "%s alone, without \"Bearer\" and blanks", what)
}

// placeholder is the text of an example. Servers without keys are given words such as EMPTY and none, which pass.
var placeholder = regexp.MustCompile(`(?i)^(?:<.*>|\[.*\]|your[-_ ].*(?:key|secret|token|id|password)|(?:sk-)?x{4,}|.*\*{3,}.*|sk-\.+|\.{3,}|change[-_ ]?me|undefined)$`)

// wantSecret refuses a printed secret, and warns of the text of an example, which servers on this machine may accept.
func wantSecret(k *strict.Source, path, value, what string) {
	k.Want(value != mask, path, mask+", which stands for a secret where a configuration is printed", "%s itself", what)
	k.Advise(!placeholder.MatchString(value), path, "is the text of an example, want %s", what)
}

// wantID refuses a name in the place of an id: it would match no one, and lock out or let in other people than it says. Ids of DingTalk are
// printable ASCII without blanks.
func wantID(k *strict.Source, path, value, what string) {
	k.Required(path, value, what)
	named := strings.ContainsFunc(value, isNoKey) || strings.HasPrefix(value, "@")
	k.Want(value == "" || !named, path, strconv.Quote(value), "%s, not a name", what)
	k.Want(!strings.ContainsAny(value, "*,;|"), path, strconv.Quote(value), "%s: one id, without patterns", what)
}

// wantPerson warns of what looks like the id of a conversation.
func wantPerson(k *strict.Source, path, value string) {
	wantID(k, path, value, staffID)
	k.Advise(!conversationForm.MatchString(value), path, "%q looks like the id of a conversation, want %s", value, staffID)
}

// wantConversation warns of what looks like the id of a sender.
func wantConversation(k *strict.Source, path, value string) {
	wantID(k, path, value, conversationID)
	k.Advise(!strings.HasPrefix(value, "$:"), path, "%q looks like the id of a sender, want %s", value, conversationID)
}

var conversationForm = regexp.MustCompile(`^cid[A-Za-z0-9+/]{8,}=+$`)

// Ids of DingTalk, in the words of the errors.
const (
	staffID        = `a staff id, such as "manager4711" (the console lists them, and a refusal names the sender's)`
	conversationID = `the id of a conversation, such as "cidAbc==" (the console lists them, and a refusal names the group's)`
)

// wantURL refuses a query and a fragment: paths are added to an address, behind whatever it has. Errors show no user, query and fragment: keys and passwords stand there.
func wantURL(k *strict.Source, path, got string) {
	const want = "the URL of a server, as in https://host/path"
	u, err := url.Parse(got)
	switch {
	case got == "" || k.Failed(path):
		k.Required(path, got, want)
	case strings.Contains(got, "@"):
		k.Fail(path, "got a user name in the URL, want %s", want)
	case strings.Contains(got, "#"):
		k.Fail(path, "got an address with a fragment behind #, want %s", want)
	case strings.Contains(got, "?"):
		k.Fail(path, "got an address with a query behind ?, want %s; a key belongs to the field for it", want)
	default:
		k.Want(err == nil && isServer(u) && !strings.ContainsFunc(got, isBlank), path, strconv.Quote(Endpoint(got).String()), "%s", want)
	}
}

func isBlank(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// hostForm has names in all scripts, and zones of IPv6. Without a name it is this machine.
var hostForm = regexp.MustCompile(`^(?:[\p{L}\p{M}\p{N}._-]*|\[[0-9A-Fa-f:.]+(?:%[^\]]+)?\])(?::[0-9]*)?$`)

func isServer(u *url.URL) bool {
	port, err := strconv.Atoi(u.Port())
	isDoubled := u.Host == "http:" || u.Host == "https:"
	return (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && hostForm.MatchString(u.Host) && !isDoubled &&
		(u.Port() == "" || err == nil && port > 0 && port <= 65535)
}

// Need lists the credentials that a command requires. All other checks always apply.
type Need uint8

// Credentials, combined with |. The database needs none: without a URL it is a private server.
const (
	NeedDingTalk Need = 1 << iota
	NeedLLM
	NeedNothing Need = 0
	NeedServe        = NeedDingTalk | NeedLLM
)
