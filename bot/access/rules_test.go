package access

import (
	"testing"

	"ebb/sessions"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	all := []string{Everyone}
	member := sessions.Message{ConversationID: "g1", ConversationType: sessions.Group, SenderID: "alice", StaffID: "alice", EncryptedID: "$:alice"}
	with := func(change func(*sessions.Message)) sessions.Message {
		m := member
		change(&m)
		return m
	}
	private := with(func(m *sessions.Message) { m.ConversationType, m.ConversationID = sessions.Private, "p1" })
	unknown := with(func(m *sessions.Message) { m.ConversationType = sessions.Unknown })
	outsider := with(func(m *sessions.Message) { m.SenderID, m.StaffID, m.EncryptedID, m.External = "$:eve", "", "", true })
	namesake := with(func(m *sessions.Message) { m.EncryptedID, m.External = "", true })
	for name, tt := range map[string]struct {
		rules *Rules
		m     sessions.Message
		want  Refusal
	}{
		"no rules":                        {nil, outsider, ""},
		"everyone":                        {&Rules{Groups: all, People: all}, member, ""},
		"an empty list of groups":         {&Rules{People: all}, member, Group},
		"an empty list of people":         {&Rules{Groups: all}, member, Person},
		"no group, in private":            {&Rules{People: all}, private, ""},
		"no group, of unknown type":       {&Rules{People: all}, unknown, Group},
		"a listed group":                  {&Rules{Groups: []string{"g0", "g1"}, People: all}, member, ""},
		"another group":                   {&Rules{Groups: []string{"g0"}, People: all}, member, Group},
		"a listed person":                 {&Rules{Groups: all, People: []string{"alice"}}, member, ""},
		"a person listed by sender id":    {&Rules{Groups: all, People: []string{"$:alice"}}, member, ""},
		"another person":                  {&Rules{Groups: all, People: []string{"bob"}}, member, Person},
		"a person, in private":            {&Rules{Groups: all, People: []string{"bob"}}, private, Person},
		"a denied group":                  {&Rules{Groups: []string{"g1"}, People: all, Deny: []string{"g1"}}, member, Group},
		"a denied person":                 {&Rules{Groups: all, People: []string{"alice"}, Deny: []string{"alice"}}, member, Person},
		"denied by sender id":             {&Rules{Groups: all, People: all, Deny: []string{"$:alice"}}, member, Person},
		"a denied private chat":           {&Rules{Groups: all, People: all, Deny: []string{"p1"}}, private, Person},
		"an outsider":                     {&Rules{Groups: all, People: all}, outsider, External},
		"an outsider, admitted":           {&Rules{Groups: all, People: all, External: true}, outsider, ""},
		"a listed outsider":               {&Rules{Groups: all, People: []string{"$:eve"}}, outsider, External},
		"a listed outsider, admitted":     {&Rules{Groups: all, People: []string{"$:eve"}, External: true}, outsider, ""},
		"a member's namesake":             {&Rules{Groups: all, People: []string{"alice"}, External: true}, namesake, Person},
		"an administrator":                {&Rules{Deny: []string{"alice", "g1"}, Admins: []sessions.UserID{"alice"}}, member, ""},
		"an administrator's namesake":     {&Rules{Groups: all, People: all, Admins: []sessions.UserID{"alice"}}, namesake, External},
		"everyone is denied":              {&Rules{Groups: all, People: all, Deny: all}, member, Group},
		"an empty entry admits no sender": {&Rules{Groups: all, People: []string{""}}, outsider, External},
		"an empty entry denies no sender": {&Rules{Groups: all, People: all, External: true, Deny: []string{""}}, outsider, ""},
	} {
		if got := tt.rules.Check(tt.m); got != tt.want {
			t.Errorf("%s: refused %q, want %q", name, got, tt.want)
		}
	}
}
