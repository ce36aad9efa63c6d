package sessions

import (
	"net/url"
	"strings"

	"github.com/rs/zerolog"
)

// Key names one session: the robot, the conversation and, where every member of a group has a session of
// their own, the sender. It is case-sensitive, as DingTalk's ids are. Make one with [NewKey].
type Key string

// RobotCode is a robot's identity at DingTalk; an enterprise robot's is the client id of its app.
type RobotCode string

// ConversationID is DingTalk's id of a group or of a private chat.
type ConversationID string

// UserID is the id of a person: the staff id within the robot's organisation, else DingTalk's encrypted sender id.
type UserID string

// MessageID is DingTalk's id of one message as people see it. A redelivered frame keeps it; two robots that are
// mentioned in one message receive the same one, so that only (RobotCode, MessageID) is unique.
type MessageID string

// ReplicaID names one running process. It is new at every start, so that a lease of the last life is never ours.
type ReplicaID string

// NewKey joins the parts of a session key. Each part is path-escaped, so that no two sessions share a key;
// sender is empty where a whole conversation is one session.
func NewKey(robot RobotCode, conversation ConversationID, sender UserID) Key {
	k := url.PathEscape(string(robot)) + "/" + url.PathEscape(string(conversation))
	if sender != "" {
		k += "/" + url.PathEscape(string(sender))
	}
	return Key(k)
}

// Conversation is the robot and the conversation of the session: members who have sessions of their own share them.
func (k Key) Conversation() (RobotCode, ConversationID) {
	parts := strings.SplitN(string(k), "/", 3)
	parts = append(parts, "", "")
	return RobotCode(unescaped(parts[0])), ConversationID(unescaped(parts[1]))
}

// unescaped is a part of a key as it was given; one that no NewKey made stands for itself.
func unescaped(part string) string {
	if s, err := url.PathUnescape(part); err == nil {
		return s
	}
	return part
}

// String is the key as it stands in tables and logs.
func (k Key) String() string { return string(k) }

// MarshalZerologObject lets a log line carry the key as its session.
func (k Key) MarshalZerologObject(e *zerolog.Event) { e.Str("session", string(k)) }
