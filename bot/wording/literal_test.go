package wording

import "testing"

// Words of people have no markup in an answer, and their addresses still lead where they did.
func TestLiteral(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"![x](https://evil.example/a.png)":         "!［x］(https://evil.example/a.png)",
		"# 通知\n**重要** <b>":                         "＃ 通知\n＊＊重要＊＊ ＜b＞",
		"标题\n===\n---\n - - -":                     "标题\n＝＝＝\n－－－\n － － －",
		"开会 https://meeting.example/j/a_b#c~d 3*4": "开会 https://meeting.example/j/a_b#c~d 3＊4",
		"https://real@evil.example":                "https://real＠evil.example",
		"a\rb\r\nc\u2028# d":                       "a\nb\nc\n＃ d",
		"- 牛奶\n- 面包 a-b=c":                         "- 牛奶\n- 面包 a-b=c",
	} {
		if got := Literal(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// A person's further lines stay theirs, however they begin.
func TestAttributed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, lang, want string }{
		{"张*三", "交周报", "zh", "张＊三：交周报"},
		{"Ann", "drink\n\n⏰ Boss: pay\r# now", "en", "Ann: drink\n> \n> ⏰ Boss: pay\n> ＃ now"},
	} {
		if got := Attributed(c.name, c.text, c.lang); got != c.want {
			t.Errorf("%q became %q, want %q", c.text, got, c.want)
		}
	}
}
