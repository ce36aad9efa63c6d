package dingtalk

import (
	"cmp"
	"errors"

	"ebb/sessions"
)

var errOtherRobot = errors.New("the robot is not configured")

// robots are those for which the application may make calls.
type robots struct {
	own    sessions.RobotCode
	serves func(sessions.RobotCode) bool
}

// codeOf is the robot of a message; the application's own for one that names none.
func (r robots) codeOf(robot sessions.RobotCode) sessions.RobotCode { return cmp.Or(robot, r.own) }
