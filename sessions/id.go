package sessions

import (
	"net/url"
	"strings"
	"time"

	"github.com/rs/zerolog"
)

// Key names one session: robot, conversation and, where members have their own sessions, the sender. It is
// case-sensitive, like DingTalk's ids.
type Key string

// RobotCode is a robot's id at DingTalk: the client id of an enterprise app.
type RobotCode string

// Robot is one that the installation has or had.
type Robot struct {
	Code      RobotCode
	Name      string
	StartedAt time.Time // the last start of a process with it
}

// RobotWork counts the sessions of a robot, and the open work in them.
type RobotWork struct{ Sessions, Messages, Replies, Cards, Schedules, Approvals int64 }

// ConversationID is DingTalk's id of a group or private chat.
type ConversationID string

// UserID is a person's staff id in the robot's organisation, else DingTalk's encrypted sender id.
type UserID string

// MessageID is DingTalk's id of a message. Redelivered frames keep it. Robots mentioned in one message share it: only
// (RobotCode, MessageID) is unique.
type MessageID string

// ReplicaID names one process. Each start has a new one, so that an earlier process's leases never match.
type ReplicaID string

// NewKey makes a key of path-escaped parts, so that keys never collide. sender is empty if the conversation is one
// session.
func NewKey(robot RobotCode, conversation ConversationID, sender UserID) Key {
	k := url.PathEscape(string(robot)) + "/" + url.PathEscape(string(conversation))
	if sender != "" {
		k += "/" + url.PathEscape(string(sender))
	}
	return Key(k)
}

// Conversation is the robot and the conversation of a session.
func (k Key) Conversation() (RobotCode, ConversationID) {
	parts := strings.SplitN(string(k), "/", 3)
	parts = append(parts, "", "")
	return RobotCode(unescapePart(parts[0])), ConversationID(unescapePart(parts[1]))
}

// Group is the key of the session that all members of the session's conversation would share.
func (k Key) Group() Key {
	robot, conversation := k.Conversation()
	return NewKey(robot, conversation, "")
}

// Gone is the key under which the usage of deleted sessions of the key's robot is kept. It names no conversation.
func (k Key) Gone() Key {
	robot, _ := k.Conversation()
	return NewKey(robot, "", "")
}

// unescapePart returns an invalid part unchanged.
func unescapePart(part string) string {
	if s, err := url.PathUnescape(part); err == nil {
		return s
	}
	return part
}

// String is the key as stored and logged.
func (k Key) String() string { return string(k) }

// MarshalZerologObject adds the key to a log line as its session.
func (k Key) MarshalZerologObject(e *zerolog.Event) { e.Str("session", string(k)) }

// Lease is the right to write a session. Term grows with every change of owner; a write with an old term fails with
// [ErrLeaseLost].
type Lease struct {
	Key   Key
	Owner ReplicaID
	Term  int64
}
