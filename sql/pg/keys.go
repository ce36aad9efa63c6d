package pg

import (
	"crypto/sha256"
	"net/url"
	"strings"

	"ebb/sessions"
)

// SessionPrefix is the prefix of a robot's session keys.
func SessionPrefix(robot sessions.RobotCode) string { return string(sessions.NewKey(robot, "", "")) }

// RobotSessions is [SessionPrefix], or empty for all robots.
func RobotSessions(robot sessions.RobotCode) string {
	if robot == "" {
		return ""
	}
	return SessionPrefix(robot)
}

// RobotOf is empty for an invalid key.
func RobotOf(key sessions.Key) sessions.RobotCode {
	robot, _, _ := strings.Cut(string(key), "/")
	code, err := url.PathUnescape(robot)
	if err != nil {
		return ""
	}
	return sessions.RobotCode(code)
}

// DeletionMark is the mark of a message that was deleted with a session. The statements of deletions make it from the conversation's
// key.
func DeletionMark(key sessions.Key, message string) []byte {
	sum := sha256.Sum256([]byte(string(key) + " " + message))
	return sum[:]
}

// ConversationKey is the part of a key without the member.
func ConversationKey(key sessions.Key) sessions.Key {
	robot, rest, _ := strings.Cut(string(key), "/")
	conversation, _, _ := strings.Cut(rest, "/")
	return sessions.Key(robot + "/" + conversation)
}
