package redact

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// Credentials are refused, and talk about them is not.
func TestCredentialShapes(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"密码是 hunter2", "密码是hunter2请记住", "password: 123456", "口令：Abc_9x", "The password is hunter2.", "pwd=x1", "管理员密码改成 qwerty12",
		"staging password: `correcthorse`", `{"password":"hunter2"}`, "secret: s3cr3t", "Password was Tr0ub4dor&3", "密码：hunter", "密码为 20260305",
		"token = s3cr3tvalue", "token=abc123def456", "API key: 9f8e7d6c5b4a", "api_key=AIzaSyD-abcdefghijklmnopqrstuv", "访问令牌：eyJhbGciOiJIUzI1NiJ9.e30",
		"use sk-abcdefghijklmnop1234", "AKIAIOSFODNN7EXAMPLE", "-----BEGIN RSA PRIVATE KEY-----",
		"wifi 密码是 abc", "数据库口令 Pa55w0rd!x", "服务器 root 密码 Abc@12345", "验证码 839201", "验证码是 839201", "校验码：77a1b2", "动态码: 4410", "密码 123456", "密码\tabcde",
		"PIN 4821", "pin: 4821", "Pin code 4821", "PIN码 4821", "门禁 PIN 是 2580", "passcode 4821", "passcode is x9y8z7", "passwd hunter2", "passwd=abc", "password hunter2 for staging",
		"the wifi password hunter2!", "口令为 xyz", "密码为abc", "VPN 口令：a1b", "密码 password hunter2", "密码 `Abc@123`", "WIFI 密码 Guest2024 大家用", "pwd 9xk3mm", "验证码 A8K2D9 五分钟内有效",
		"wifi密码abc12345", "开机密码1234", "账号admin密码admin123", "密码就是 hunter2", "密码叫 abc123", "密码改成了 abc123", "密码默认为 guest", "密碼是 abc123", "数据库密码是：Root#2026", "验证码839201", "驗證碼 839201",
		"password for staging is hunter2", "The password of the VPN is Abc@9x", "The VPN passcode's 99812", "admin pass: hunter2", "login: bob / pass hunter2", "otp 839201", "The OTP is 839201", "verification code: 839201",
		"推代码用 github_pat_11ABCDEFG0abcdefijklmn_0123456789", "ghp_abcdefghijklmnop1234", "gho_abcdefghijklmnop1234", "ghu_abcdefghijklmnop1234",
		"ghs_abcdefghijklmnop1234", "ghr_abcdefghijklmnop1234", "glpat-abcdefghijklmnop12", "xoxb-abcdefghijklmnop12", "LTAIabcdefghijkl1234",
		"AKIAABCDEFGHIJKLMNOP", "AIzaabcdefghijklmnopqrstuvwxyz01234567", "eyJabcdefgh.abcdefghi.x", "sk-abcdefghijklmnop",
		"the door code is 4821", "门禁码 4821", "服务器 root/Abc@12345", "root/Abc@12345请保密", "sa/Abc#12345。", "oracle/Abc$12345=", "授权码是 abcd1234efgh",
	} {
		if !HasSecret(text) {
			t.Errorf("%q was taken for a fact", text)
		}
	}
	for _, text := range []string{
		"token: 80,000", "token: 3 万", "阈值 token：80000", "max token = 4096", "每次约 1,200 token", "token is 80k", "tokens: 128,000",
		"密码每 90 天要换一次", "密码是必填项", "密码：12 位以上", "密码是 8-16 位", "the password is required", "password reset is Friday", "the secret is out",
		"密码已重置", "密码过期了", "验证码服务迁到 B 区", "密码 90 天换一次", "密码 2026-12-01 到期", "密码 reset 流程见 wiki", "密码 policy", "验证码 60 秒内有效", "验证码 60s 过期", "验证码 SDK 由小王维护", "验证码 v2.1 上线",
		"验证码是 6 位数字", "验证码有 4 位", "密码是 bcrypt 加密的", "密码是 LDAP 统一管理的", "password manager is 1Password", "password required", "password 12 characters long", "passwords are rotated on Friday",
		"the passcode expires in 5 minutes", "PIN 码要 6 位", "pin the version to 1.2.3", "pinis 4711", "pin 3 messages", "shipping: 4410", "the spinning 4096 disk", "密码 https://vault.cn/x 里有", "忘记密码 找 ops@a.cn",
		"口令 OTP", "口令由安全组发放", "password: required", "密码：见 wiki", "密码 sha-256 存储", "passwd 命令被禁用", "GPIO pin 13", "password-less login 3.0", "验证码 2026-12-01 起停用",
		"密码2026年到期", "密码SDK", "密码MD5加密", "密码v2", "密码90天一换", "密码password", "密码默认 MD5 存储", "密码设为必填", "密码改到后台设置", "验证码6位", "验证码OCR", "password for staging is required", "the password of Bob is in the vault",
		"tests pass: 12 of 14", "CI pass: go1.27", "must pass phase2", "the door code is at the desk", "access code review is Friday", "otp 登录上线", "error code 4821", "status code: 4041", "zip code 100080", "admin/v2/users", "root/etc@2", "ubuntu/22.04+cuda12 is the base image", "postgres/main=primary15", "guest/room1+2 is booked", "ubuntu/jammy64=20230101", "admin/users2=beta", "root/lib@v2.1x/index",
		"path /pass/2",
		"token for Bob is 12345678a", "the token of the week is abcdefgh1", "passcodes", "PIN 13", "密码换成 passkey", "密码换成 FIDO2", "secret to success is work1",
		"token: expired", "API key: ask Carol", "令牌是按天发的", "secret santa is on Friday", "token is counted per day",
	} {
		if HasSecret(text) {
			t.Errorf("%q was taken for a credential", text)
		}
	}
}

// P74: a credential's value goes, and what stands around it stays.
func TestRedact(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"密码是 hunter2，周五前改掉", "密码是 [已隐去]，周五前改掉"},
		{"服务器 root 密码 Abc@12345，别外传", "服务器 root 密码 [已隐去]，别外传"},
		{"验证码 839201。PIN: 4821", "验证码 [已隐去]。PIN: [已隐去]"},
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
		if got := Secrets(c.text); got != c.want {
			t.Errorf("%q became %q, want %q", c.text, got, c.want)
		}
	}
	for _, text := range []string{
		"https://a.cn:8080/x@y", "token: 80,000", "the bearer of bad news is late", "mail li@a.cn: 3 items", "密码每 90 天要换一次", "http://a.cn/b:c@d",
		"task-management-and-more-words", "basic authorization: required",
	} {
		if got := Secrets(text); got != text {
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
		if got := Secrets(text); strings.Contains(got, secret) {
			t.Fatalf("%q became %q", text, got)
		}
	})
}

// P74: redacted text holds no credential and is not redacted again. A text without one stays as it is.
func FuzzRedact(f *testing.F) {
	for _, text := range []string{
		"密码是 hunter2", "password: sk-abcdefghijklmnop1234", "postgres://a:b@c:d@e/f", "-----BEGIN PRIVATE KEY-----abc", "token=[已隐去]abc12345",
		"acce\u017fs_key=abcdefgh12345678", "\u017fa/Abc@1234", "300\u212apin: 4711", "\u0130PIN: 4711", "\u0130admin pass: Kx9$kk2",
		"AKIAABCDEFGHIJKLMNOP", "LTAIabcdefghijkl1234", "AIzaabcdefghijklmnopqrstuvwxyz01234567", "github_pat_11ABCDEFG0abcdefijklmn_0123",
		"gho_abcdefghijklmnop12", "glpat-abcdefghijklmnop12", "xoxb-abcdefghijklmnop12", "eyJabcdefgh.abcdefghi.x",
		"Pinning it was 12345678 for the passport", "pinis 4711", "admin pass is Kx9$kk2", "root / Abc@123", "http://a:b/c", "sa/x1!y22",
		"two-factor: 2fa code is 481516", "accesskey=abcdefgh12345678", "API key: abcdefgh12345678",
		"secret=\"a' b\"", "Bearer Bearer abcdefgh12345678", "pwd=password=x1", "口令是口令：ab12",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if found, all := findSecrets(text), findKinds(text, allSigns); !slices.Equal(found, all) {
			t.Errorf("%q has secrets at %v, and where all are searched for at %v", text, found, all)
		}
		got := Secrets(text)
		if HasSecret(got) || Secrets(got) != got {
			t.Errorf("%q became %q, which still has a secret", text, got)
		}
		if !HasSecret(text) && got != text {
			t.Errorf("%q has no secret and became %q", text, got)
		}
		if utf8.ValidString(text) && !utf8.ValidString(got) {
			t.Errorf("%q became %q, which is not UTF-8", text, got)
		}
	})
}
