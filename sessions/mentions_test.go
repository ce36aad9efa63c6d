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
