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

// Denies reports whether some are denied, so that further ids of a sender count.
func (r *Rules) Denies() bool { return r != nil && len(r.Deny) > 0 }

// Check returns why a message is refused. Administrators are always admitted. linked are further ids that frames had next to an id of
// the sender. They may be another person's too, so that they give no right, and a denial of one holds.
func (r *Rules) Check(m sessions.Message, linked ...sessions.UserID) Refusal {
	if r == nil || m.StaffID != "" && !m.External && slices.Contains(r.Admins, m.StaffID) {
		return ""
	}
	conversation := string(m.ConversationID)
	denied := hasAny(r.Deny, conversation)
	if m.ConversationType != sessions.Private && (denied || !hasAny(r.Groups, conversation)) {
		return Group
	}
	person := hasAny(r.People, idsOf(m)...)
	switch {
	case denied || hasAny(r.Deny, string(m.SenderID), string(m.EncryptedID)) ||
		slices.ContainsFunc(linked, func(id sessions.UserID) bool { return hasAny(r.Deny, string(id)) }):
		return Person
	case m.External && !r.External:
		return External
	case !person:
		return Person
	}
	return ""
}

// A staff id of another organization may be that of a member.
func idsOf(m sessions.Message) []string {
	if m.External && m.StaffID != "" {
		return nil
	}
	return []string{string(m.SenderID), string(m.EncryptedID)}
}

func hasAny(list []string, ids ...string) bool {
	return slices.ContainsFunc(list, func(entry string) bool { return entry == Everyone || entry != "" && slices.Contains(ids, entry) })
}
