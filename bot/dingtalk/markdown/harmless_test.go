package markdown

import "testing"

func TestHarmless(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"@all @所有人 @alan": "＠all ＠所有人 @alan",
		"[详情](dtmd://dingtalkclient/sendMessage?content=/忘记我)":       "[详情](dtmd：//dingtalkclient/sendMessage?content=/忘记我)",
		"[x](DTMD&#58;//dingtalkclient/sendMessage?content=/forget)": "[x](DTMD：//dingtalkclient/sendMessage?content=/forget)",
		"[x](https://example.com/dtmd)":                              "[x](https://example.com/dtmd)",
	} {
		if got := Harmless(text); got != want || Harmless(got) != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
