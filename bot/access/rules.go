package access

import (
	"slices"

	"ebb/sessions"
)

// Rules say which groups and people the bot serves. A nil *Rules admits all.
type Rules struct {
	Groups   []string // conversation ids
	People   []string // staff ids, or else sender ids
	Deny     []string // ids of either kind; they take precedence
	External bool     // serves people outside the organization too
	Admins   []sessions.UserID
}

// Everyone in a list stands for all ids.
const Everyone = "*"

// Refusal is the reason why a message is refused; empty: it is admitted. The values are labels of metrics.
type Refusal string

const (
	Group    Refusal = "group"
	Person   Refusal = "person"
	External Refusal = "external" // the bot serves the organization alone
)

// Check returns why a message is refused. Administrators are always admitted.
func (r *Rules) Check(m sessions.Message) Refusal {
	if r == nil || m.StaffID != "" && !m.External && slices.Contains(r.Admins, m.StaffID) {
		return ""
	}
	conversation := string(m.ConversationID)
	denied := lists(r.Deny, conversation)
	if m.ConversationType != sessions.Private && (denied || !lists(r.Groups, conversation)) {
		return Group
	}
	person := lists(r.People, ids(m)...)
	switch {
	case denied || lists(r.Deny, string(m.SenderID), string(m.EncryptedID)):
		return Person
	case m.External && !r.External:
		return External
	case !person:
		return Person
	}
	return ""
}

// A staff id of another organization may be that of a member.
func ids(m sessions.Message) []string {
	if m.External && m.StaffID != "" {
		return nil
	}
	return []string{string(m.SenderID), string(m.EncryptedID)}
}

func lists(list []string, ids ...string) bool {
	return slices.ContainsFunc(list, func(entry string) bool { return entry == Everyone || entry != "" && slices.Contains(ids, entry) })
}
