package pg

import (
	"net/url"
	"strings"

	"ebb/sessions"
)

// SessionPrefix is what the keys of a robot's sessions begin with.
func SessionPrefix(robot sessions.RobotCode) string { return string(sessions.NewKey(robot, "", "")) }

// RobotOf is the robot that a session is one of; empty for what is no key.
func RobotOf(key sessions.Key) sessions.RobotCode {
	robot, _, _ := strings.Cut(string(key), "/")
	code, err := url.PathUnescape(robot)
	if err != nil {
		return ""
	}
	return sessions.RobotCode(code)
}
