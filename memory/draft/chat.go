package draft

import (
	"maps"
	"time"

	"ebb/memory"
	"ebb/sessions"
)

// Chat is a conversation with its people, for routing.
type Chat struct {
	Key          sessions.Key
	Robot        sessions.RobotCode
	Conversation sessions.ConversationID
	Private      bool
	// Roster has the speakers' ids by name and id.
	Roster map[string]sessions.UserID
	// Person is the bot's partner in a private chat.
	Person sessions.UserID
	// Said are the possible sources in order. Messages of an uncommitted turn have no Seq.
	Said []sessions.Event
	// Retold is other text that the model saw, such as summaries. It may repeat anyone. A fact without support comes
	// from there unless people's words in Said have more of it.
	Retold []string
	// Reads is as in [memory.Reader].
	Reads sessions.ModelID
	// Location is the zone of relative dates; nil: UTC.
	Location *time.Location
	// TaskTTL is the lifetime of the state of work; 0: [DefaultTaskTTL].
	TaskTTL time.Duration
}

// DefaultTaskTTL is the default of [Chat.TaskTTL].
const DefaultTaskTTL = 14 * 24 * time.Hour

// ChatOf is the chat of a session's events.
func ChatOf(s sessions.Session, events []sessions.Event) Chat {
	c := Chat{Key: s.Key, Robot: s.RobotCode, Conversation: s.ConversationID, Roster: RosterOf(events), Said: events}
	c.Private = s.ConversationType == sessions.Private
	if c.Private {
		for _, e := range events {
			if e.Role == sessions.RoleUser {
				c.Person = e.SenderID
			}
		}
	}
	return c
}

// ReaderOf is the reader of memory in a chat.
func ReaderOf(c Chat) memory.Reader {
	r := memory.Reader{Key: c.Key, Robot: c.Robot, Conversation: c.Conversation, Private: c.Private, Reads: c.Reads}
	if c.Private && c.Person != "" {
		r.Users = []sessions.UserID{c.Person}
	}
	return r
}

// RosterOf maps speakers by id, by transcript label, and by unambiguous nick. People choose their nicks: none can take
// another person's id or label.
func RosterOf(events []sessions.Event) map[string]sessions.UserID {
	ids, labels, nicks := map[string]sessions.UserID{}, map[string]sessions.UserID{}, map[string]sessions.UserID{}
	name := func(names map[string]sessions.UserID, name string, id sessions.UserID) {
		if other, taken := names[name]; taken && other != id {
			id = "" // two people: ambiguous
		}
		names[name] = id
	}
	for _, e := range events {
		if e.Role != sessions.RoleUser || e.SenderID == "" {
			continue
		}
		ids[string(e.SenderID)] = e.SenderID
		name(labels, sessions.Speaker(e.SenderNick, e.SenderID), e.SenderID)
		name(nicks, e.SenderNick, e.SenderID)
		if shown := sessions.Nick(e.SenderNick); shown != e.SenderNick {
			name(nicks, shown, e.SenderID)
		}
	}
	roster := nicks
	maps.Copy(roster, labels)
	maps.Copy(roster, ids)
	maps.DeleteFunc(roster, func(name string, id sessions.UserID) bool { return name == "" || id == "" })
	return roster
}
