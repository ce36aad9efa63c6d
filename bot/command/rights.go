package command

import (
	"slices"

	"ebb/bot/manage"
	"ebb/bot/reload"
	"ebb/bot/view"
	"ebb/memory"
	"ebb/sessions"
)

// RightWords are the words of rights in a configuration.
var RightWords = map[string]Right{"anyone": Anyone, "owner": Owner, "admin": Admin}

// roles judges the senders of messages.
type roles struct {
	current *reload.Current // administrators, and configured rights
}

func (e *env) roles() roles { return roles{e.shared.Current} }

// right lets a configured right replace the table's. A use for administrators alone stays theirs: it affects other
// people's data. of is the session, whose robot may have rights of its own.
func (r roles) right(of sessions.Key, c *Command, u *Use) Right {
	if word, ok := r.current.Newest(of).CommandRights[c.EN[0]]; ok && u.Who < Admin {
		return RightWords[word]
	}
	return u.Who
}

// may treats a sender without a staff id as outside the organization, and as no administrator.
func (r roles) may(e sessions.Event, right Right) bool {
	switch right {
	case Owner:
		return e.Message != nil && e.Message.ConversationType == sessions.Private || r.isAdmin(e)
	case Admin:
		return r.isAdmin(e)
	case Installation:
		return r.role(e) == manage.Admin
	}
	return true
}

func (r roles) actor(t *view.CommandTurn) manage.Actor {
	asked := t.Asked
	return manage.Actor{
		Role: r.role(asked), Person: asked.SenderID, Reader: t.Reader(),
		Asking: memory.Asking{Lease: t.Lease, Event: asked.ID, Language: t.Lang},
	}
}

// isAdmin reports whether a message's sender administers its group, or the installation.
func (r roles) isAdmin(e sessions.Event) bool { return r.role(e) >= manage.GroupAdmin }

// role follows from the message. The platform's mark of an administrator counts in the group of the message alone.
func (r roles) role(e sessions.Event) manage.Role {
	switch m := e.Message; {
	case m == nil || m.StaffID == "" || m.External:
		return manage.Member
	case slices.Contains(r.current.Get().Admins, m.StaffID):
		return manage.Admin
	case m.Admin && m.ConversationType == sessions.Group:
		return manage.GroupAdmin
	}
	return manage.Member
}
