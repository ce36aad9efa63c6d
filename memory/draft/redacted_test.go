package draft

import (
	"strings"
	"testing"

	"ebb/memory/classify"
	"ebb/memory/memorytest"
)

// The text next to a redacted credential is kept, without the remains of it; a fact of nothing else is refused.
func TestShells(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"数据库 db.internal:5432，用户 app，密码 [已隐去]，负责人 Bob":                        "数据库 db.internal:5432，用户 app，负责人 Bob",
		"测试环境地址 10.2.3.4，账号 qa，密码 [已隐去]":                                      "测试环境地址 10.2.3.4，账号 qa",
		"生产库是 postgres://app:[已隐去]@db1/orders，归 Bob 管":                        "生产库是 postgres://db1/orders，归 Bob 管",
		"staging runs on 10.0.0.3, admin password is [REDACTED], owner Carol": "staging runs on 10.0.0.3, owner Carol",
		"数据库 db.internal:5432 用户 app 口令：【已隐去】 负责人 Bob":                        "数据库 db.internal:5432 用户 app 负责人 Bob",
		"日志脱敏后显示为 [redacted]":                                                 "日志脱敏后显示为 [redacted]",
		"周会改到周三，10,000 元以内不用审批":                                               "周会改到周三，10,000 元以内不用审批",
		"token=[已隐去]": "", "密码：［已隐去］": "", "令牌是【已隐去】": "", "the key is [REDACTED]": "", "[已隐去]": "", "服务器 root 密码 [已隐去]": "", "wifi 密码是 [已隐去]。": "", "Authorization: Bearer [已隐去]": "",
		"root/[已隐去]": "", `{"password":"[已隐去]"}`: "",
	} {
		s, _, err := ParseSave(memorytest.SaveCall(text))
		switch {
		case len(s.Facts) > 0:
			if got := s.Facts[0].Content; got != want {
				t.Errorf("%q became %q, want %q", text, got, want)
			}
		case want != "" || err == nil || s.Refused[classify.Credential] != 1 || strings.Contains(err.Error(), "已隐去"):
			t.Errorf("%q is refused: %v, %v", text, err, s.Refused)
		}
	}
}
