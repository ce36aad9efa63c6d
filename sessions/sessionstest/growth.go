package sessionstest

import (
	"strings"
	"testing"
	"time"
)

// runaways are what messages are made of that keep careless code busy: runs without a break, and beginnings of something
// that is looked for, over and over.
var runaways = map[string]string{
	"one letter":         "a",
	"one figure":         "7",
	"one blank":          " ",
	"one mark":           "!",
	"one emoji":          "👍",
	"one Chinese letter": "的",
	"Chinese sentences":  "我们下周三上午在三号会议室开会，请大家准时参加。",
	"base64":             "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo0MTIzNDU2Nzg5Kys/",
	"combining marks":    "é́",
	"no width":           "\u200b\ufeff",
	"spelled":            "a b ",
	"dashes":             "a-b_c.",
	"speakers":           "王芳: ",
	"to be remembered":   "记住：",
	"passwords":          "password is ",
	"quoted passwords":   "pwd='",
	"passwords in turn":  "password=口令=",
	"keys":               "api_key=",
	"bearers":            "Bearer ",
	"key blocks":         "-----BEGIN PRIVATE KEY-----",
	"links":              "https://a",
	"dates":              "2026-",
	"days":               "上周三",
	"numbers":            "1.",
	"quotes":             "\"",
	"open brackets":      "([{<",
	"fences":             "```\n",
	"JSON":               `{"facts":[`,
}

// LongMessage is longer than any message of DingTalk, in bytes.
const LongMessage = 300 << 10

const (
	// mostTimes is how much longer a text of ten times the length may take: quadratic work takes a hundred times as long.
	mostTimes = 30
	// negligible is a time that holds nothing up, whatever it is compared with.
	negligible = 20 * time.Millisecond
)

// CheckGrowth fails the test where f takes out of proportion longer for a text of so many bytes than for a tenth of it,
// whatever the text is made of. Times are compared with one another, side by side, and only what is too slow in each of
// several rounds fails.
func CheckGrowth(tb testing.TB, what string, size int, f func(text string)) {
	tb.Helper()
	for name, unit := range runaways {
		small, large := strings.Repeat(unit, size/10/len(unit)), strings.Repeat(unit, size/len(unit))
		var a, b time.Duration
		slow := true
		for round := 0; round < 5 && slow; round++ {
			a, b = took(f, small), took(f, large)
			slow = b > negligible && b > mostTimes*a
		}
		if slow {
			tb.Errorf("%s: %s: %d bytes take %s, %d take %s", what, name, len(small), a, len(large), b)
		}
	}
}
