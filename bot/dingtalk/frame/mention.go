package frame

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"ebb/bot/dingtalk/value"
	"ebb/sessions"
)

type mentions struct {
	bot    string            // encrypted id
	ours   bool              // the robot is mentioned, or the frame has no list
	alone  bool              // only the robot is mentioned
	people []sessions.UserID // without the robot
}

// maxMentioned bounds the people of a message.
const maxMentioned = 50

// mentionsOf reads who is mentioned. Newer clients leave the names out of the text.
func mentionsOf(o value.Object, bot string) mentions {
	at := mentions{bot: bot}
	users := o.List("atUsers")
	at.ours = bot == "" || len(users) == 0
	if o.Flag("isAtAll") {
		at.people = append(at.people, sessions.Everyone)
	}
	for _, u := range users {
		one := value.ObjectOf(u)
		if bot != "" && one.Str("dingtalkId") == bot {
			at.ours, at.alone = true, len(users) == 1
			continue
		}
		id := sessions.UserID(boundedID(one.Str("staffId", "dingtalkId")))
		if id != "" && !slices.Contains(at.people, id) && len(at.people) < maxMentioned {
			at.people = append(at.people, id)
		}
	}
	return at
}

// isMention reports whether a text is one mention and nothing else.
func isMention(text string) bool {
	text = strings.TrimSpace(text)
	if slash := strings.IndexAny(text, "/／"); slash > 0 && (isHanBehind(text[slash:]) || isWord(text[slash:])) {
		return false
	}
	return hasAt(text) && strings.IndexFunc(text, unicode.IsSpace) < 0 && utf8.RuneCountInString(text) > 1
}

func hasAt(text string) bool { return strings.HasPrefix(text, "@") || strings.HasPrefix(text, "＠") }

func beginsCommand(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, "/") || strings.HasPrefix(text, "／")
}

// commandBehind drops the mentions before a command. A text with other words before the slash stays as it is.
func commandBehind(text string) string {
	rest := strings.TrimSpace(text)
	for hasAt(rest) {
		end := strings.IndexFunc(rest, unicode.IsSpace)
		if glued := strings.IndexAny(rest, "/／"); glued > 0 && (end < 0 || glued < end) &&
			(isHanBehind(rest[glued:]) || isWord(rest[glued:]) && rest == strings.TrimSpace(text)) {
			end = glued
		}
		if end < 0 {
			return text
		}
		rest = strings.TrimSpace(rest[end:])
	}
	if beginsCommand(rest) {
		return rest
	}
	return text
}

// isWord reports whether a slash and one Latin word are the rest of a text: "@Ebb/help".
func isWord(slash string) bool {
	_, n := utf8.DecodeRuneInString(slash)
	return len(slash) > n && strings.Trim(slash[n:], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// isHanBehind excludes names such as @types/node.
func isHanBehind(slash string) bool {
	_, n := utf8.DecodeRuneInString(slash)
	r, _ := utf8.DecodeRuneInString(slash[n:])
	return unicode.Is(unicode.Han, r)
}
