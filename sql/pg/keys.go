package pg

import (
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
