package sessions

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// Credentials are refused, and talk about them is not.
func TestWhatLooksLikeACredential(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"密码是 hunter2", "密码是hunter2请记住", "password: 123456", "口令：Abc_9x", "The password is hunter2.", "pwd=x1", "管理员密码改成 qwerty12",
		"staging password: `correcthorse`", `{"password":"hunter2"}`, "secret: s3cr3t", "Password was Tr0ub4dor&3", "密码：hunter", "密码为 20260305",
		"token = s3cr3tvalue", "token=abc123def456", "API key: 9f8e7d6c5b4a", "api_key=AIzaSyD-abcdefghijklmnopqrstuv", "访问令牌：eyJhbGciOiJIUzI1NiJ9.e30",
		"use sk-abcdefghijklmnop1234", "AKIAIOSFODNN7EXAMPLE", "-----BEGIN RSA PRIVATE KEY-----",
	} {
		if !HoldsSecret(text) {
			t.Errorf("%q was taken for a fact", text)
		}
	}
	for _, text := range []string{
		"token: 80,000", "token: 3 万", "阈值 token：80000", "max token = 4096", "每次约 1,200 token", "token is 80k", "tokens: 128,000",
		"密码每 90 天要换一次", "密码是必填项", "密码：12 位以上", "密码是 8-16 位", "the password is required", "password reset is Friday", "the secret is out",
		"token: expired", "API key: ask Carol", "令牌是按天发的", "secret santa is on Friday", "token is counted per day",
	} {
		if HoldsSecret(text) {
			t.Errorf("%q was taken for a credential", text)
		}
	}
}

// P74: a credential's value goes, and what stands around it stays.
func TestRedact(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"密码是 hunter2，周五前改掉", "密码是 [已隐去]，周五前改掉"},
		{"管理员密码：Abc_9x。谢谢", "管理员密码：[已隐去]。谢谢"},
		{`{"password":"hunter2","user":"li"}`, `{"password":"[已隐去]","user":"li"}`},
		{`{\"password\":\"hunter2\",\"n\":1}`, `{\"password\":\"[已隐去]\",\"n\":1}`},
		{"Authorization: Bearer abcDEF123456.xyz789 was sent", "Authorization: Bearer [已隐去] was sent"},
		{"authorization: Basic dXNlcjpwYXNz", "authorization: Basic [已隐去]"},
		{"key sk-abcdefghijklmnop1234 works", "key [已隐去] works"},
		{"AKIAIOSFODNN7EXAMPLE, ghp_16C7e42F292c6912E7aa", "[已隐去], [已隐去]"},
		{"连 postgres://ebb:s3cret@db.cn:5432/ebb 看", "连 postgres://ebb:[已隐去]@db.cn:5432/ebb 看"},
		{"https://oapi.example/send?access_token=abc123def456&timestamp=17", "https://oapi.example/send?access_token=[已隐去]&timestamp=17"},
		{"-----BEGIN RSA PRIVATE KEY-----\nMIIB+/=\nxx\n-----END RSA PRIVATE KEY-----\n收好", "[已隐去]\n收好"},
		{"-----BEGIN PRIVATE KEY-----\nMIIBabc，后面没了", "[已隐去]，后面没了"},
		{"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.abc-_1", "[已隐去]"},
	} {
		if got := Redact(c.text); got != c.want {
			t.Errorf("%q became %q, want %q", c.text, got, c.want)
		}
	}
	for _, text := range []string{
		"https://a.cn:8080/x@y", "token: 80,000", "the bearer of bad news is late", "mail li@a.cn: 3 items", "密码每 90 天要换一次", "http://a.cn/b:c@d",
		"task-management-and-more-words", "basic authorization: required",
	} {
		if got := Redact(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// P74: whatever stands around a credential, it is gone afterwards.
func TestRedactedCredentialsAreGone(t *testing.T) {
	t.Parallel()
	around := rapid.StringOfN(rapid.RuneFrom([]rune("ab1 \n，。：是:=\"'@/")), 0, 30, -1)
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[a-zA-Z0-9]{20}7`).Draw(t, "secret")
		shape := rapid.SampledFrom([]string{"密码：%", "password=%", "api_key: %", "Bearer %", "sk-%", "https://u:%@h.cn/x", `"token":"%"`}).Draw(t, "shape")
		text := around.Draw(t, "before") + " " + strings.Replace(shape, "%", secret, 1) + " " + around.Draw(t, "after")
		if got := Redact(text); strings.Contains(got, secret) {
			t.Fatalf("%q became %q", text, got)
		}
	})
}

// P74: what is redacted holds no credential, is not redacted again, and a text without one stays as it is.
func FuzzRedact(f *testing.F) {
	for _, text := range []string{
		"密码是 hunter2", "password: sk-abcdefghijklmnop1234", "postgres://a:b@c:d@e/f", "-----BEGIN PRIVATE KEY-----abc", "token=[已隐去]abc12345",
		"secret=\"a' b\"", "Bearer Bearer abcdefgh12345678", "pwd=password=x1", "口令是口令：ab12",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Redact(text)
		if HoldsSecret(got) || Redact(got) != got {
			t.Errorf("%q became %q, which still tells a secret", text, got)
		}
		if !HoldsSecret(text) && got != text {
			t.Errorf("%q tells nothing and became %q", text, got)
		}
		if utf8.ValidString(text) && !utf8.ValidString(got) {
			t.Errorf("%q became %q, which is not UTF-8", text, got)
		}
	})
}
