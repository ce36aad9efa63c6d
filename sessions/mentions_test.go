package sessions

import "testing"

func TestMentionsAreNamedBySpeakers(t *testing.T) {
	t.Parallel()
	said := []Event{
		{Role: RoleUser, SenderID: "u2", SenderNick: "张三", Message: &Message{EncryptedID: "$:LWCP_v1:$u2"}},
		{Role: RoleUser, SenderID: "$:LWCP_v1:$x", SenderNick: "外人"},
	}
	for _, c := range []struct {
		text      string
		mentioned []UserID
		want      string
	}{
		{"周五前给出来", nil, ""},
		{"周五前给出来", []UserID{"u2"}, " (mentions 张三(u2))"},
		{"周五前给出来", []UserID{"$:LWCP_v1:$u2"}, " (mentions 张三(u2))"},
		{"周五前给出来", []UserID{"u2", "u3"}, " (mentions 张三(u2), u3)"},
		{"周五前给出来", []UserID{"$:LWCP_v1:$x"}, " (mentions 外人［外部］)"},
		{"周五前给出来", []UserID{Everyone}, " (mentions 所有人)"},
		{"@张三 周五前给出来", []UserID{"u2"}, ""},
		{"@张三 周五前给出来", []UserID{"u2", "u3"}, " (mentions u3)"},
		{ErasedText, []UserID{"u2"}, ""},
	} {
		e := Event{Role: RoleUser, SenderID: "u1", Content: c.text, Message: &Message{Mentioned: c.mentioned}}
		s := NewSpeakers(said, []Event{e})
		for _, before := range said {
			s.Add(before)
		}
		if got := s.Note(e); got != c.want {
			t.Errorf("%s %v: %q, want %q", c.text, c.mentioned, got, c.want)
		}
	}
}

// The names in a quoted message are missing from its words, too.
func TestMentionsInQuotesAreNamed(t *testing.T) {
	t.Parallel()
	said := Event{Role: RoleUser, SenderID: "u2", SenderNick: "张三"}
	for _, c := range []struct {
		quoted string
		in     []UserID
		own    []UserID
		want   string
	}{
		{"周五前给出来", []UserID{"u2"}, nil, " (the quoted message mentions 张三(u2))"},
		{"周五前给出来", []UserID{"u2", Everyone}, []UserID{"u3"}, " (mentions u3; the quoted message mentions 张三(u2), 所有人)"},
		{"@张三 周五前给出来", []UserID{"u2"}, nil, ""},
		{ErasedText, []UserID{"u2"}, nil, ""},
	} {
		q := Quote{Nick: "李四", Text: c.quoted, Mentioned: c.in}
		e := Event{Role: RoleUser, SenderID: "u1", Content: q.Lead("Ebb") + "好的", Message: &Message{Mentioned: c.own, Quote: &q}}
		s := NewSpeakers([]Event{e})
		s.Add(said)
		if got := s.Note(e); got != c.want {
			t.Errorf("of %q: %q, want %q", c.quoted, got, c.want)
		}
	}
}
