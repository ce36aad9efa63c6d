package draft

import (
	"maps"
	"time"

	"ebb/memory"
	"ebb/sessions"
)

// Chat is where facts were said, for routing.
type Chat struct {
	Key          sessions.Key
	Robot        sessions.RobotCode
	Conversation sessions.ConversationID
	Private      bool
	// Roster maps the names and ids of those who spoke to their ids.
	Roster map[string]sessions.UserID
	// Person is whom the bot talks to in a private chat.
	Person sessions.UserID
	// Said is what facts can have been drawn from, in order. Messages of a turn that has not committed have no Seq yet.
	Said []sessions.Event
	// Retold is what the model was shown besides Said, such as summaries of what stood before it, which may tell anybody's
	// words, a tool's too: what nobody in Said said is taken from there unless it has more in common with their words.
	Retold []string
	// Location is the conversation's time zone, for relative dates; nil: UTC.
	Location *time.Location
	// TaskTTL is how long the state of work is kept; 0: [DefaultTaskTTL].
	TaskTTL time.Duration
}

// DefaultTaskTTL is how long the state of work is kept where nothing else is said.
const DefaultTaskTTL = 14 * 24 * time.Hour

// ChatOf is where a session's facts are said, with those who speak in events and what they say.
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

// ReaderOf is who reads memory in a chat.
func ReaderOf(c Chat) memory.Reader {
	r := memory.Reader{Key: c.Key, Robot: c.Robot, Conversation: c.Conversation, Private: c.Private}
	if c.Private && c.Person != "" {
		r.Users = []sessions.UserID{c.Person}
	}
	return r
}

// RosterOf lists who spoke in events: by id, by the label that transcripts show, and by nick where one person alone
// goes by it. Nicks are what people choose to write: none of them can take another's id or label.
func RosterOf(events []sessions.Event) map[string]sessions.UserID {
	ids, labels, nicks := map[string]sessions.UserID{}, map[string]sessions.UserID{}, map[string]sessions.UserID{}
	name := func(names map[string]sessions.UserID, name string, id sessions.UserID) {
		if other, taken := names[name]; taken && other != id {
			id = "" // of two people: of nobody
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
