package sessions

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSpeaker(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		nick string
		id   UserID
		want string
	}{
		{"Boss", "u0001", "Boss(u0001)"},
		{"", "u0001", "u0001"},
		{"Boss", "$:LWCP_v1:$x", "Boss［外部］"},
		{"Boss(u0001)", "$:LWCP_v1:$x", "Boss u0001［外部］"},
		{"Boss（u0001）: ok", "", "Boss u0001 ok［外部］"},
		{"Boss(u0001)", "u0002", "Boss u0001(u0002)"},
		{"Eve［外部］", "u0003", "Eve 外部(u0003)"},
		{"", "$:LWCP_v1:$x", "［外部］"},
		{"a\nb\u202e\u200b\tc：d", "u4", "a b c d(u4)"},
		{strings.Repeat("长", 500), "u5", strings.Repeat("长", 40) + "…(u5)"},
	} {
		if got := Speaker(c.nick, c.id); got != c.want {
			t.Errorf("Speaker(%.40q, %q) = %q, want %q", c.nick, c.id, got, c.want)
		}
	}
}

// Law: for any chosen names, no person is taken for a member with another id, and no outsider for a member.
func TestNicksDoNotImpersonateMembers(t *testing.T) {
	t.Parallel()
	nick := rapid.StringOf(rapid.RuneFrom([]rune("Bo u01():：（）［］[]外部\n\u200b\u202e【】<>")))
	ids := rapid.SampledFrom([]UserID{"u1", "u01", "u0", "", "$:LWCP_v1:$x"})
	rapid.Check(t, func(t *rapid.T) {
		a, b := ids.Draw(t, "a"), ids.Draw(t, "b")
		x, y := Speaker(nick.Draw(t, "x"), a), Speaker(nick.Draw(t, "y"), b)
		if x == y && a != b && (!Outside(a) || !Outside(b)) {
			t.Fatalf("%q and %q are both shown as %q", a, b, x)
		}
		if strings.ContainsAny(x, ":：\n") {
			t.Fatalf("%q could begin another line", x)
		}
	})
}
