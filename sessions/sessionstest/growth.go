package sessionstest

import (
	"strings"
	"testing"
	"time"
)

// runaways keep careless code busy: runs without a break, and repeated beginnings of something searched for.
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
	tenths = 10
	// mostTimes bounds the time of a text over that of its tenths together. Quadratic work takes ten times as long.
	// Linear work was measured at up to 4.6 times, where its result no longer fits the processor's cache.
	mostTimes  = 6
	negligible = 20 * time.Millisecond
	// Some systems count the processor's time in steps of 10 ms.
	measurable = 100 * time.Millisecond
)

// CheckGrowth fails the test if f takes out of proportion longer for one text than for ten tenths of it.
func CheckGrowth(tb testing.TB, what string, size int, f func(text string)) {
	tb.Helper()
	CheckGrowthOf(tb, what, size, runaways, f)
}

// CheckGrowthOf is [CheckGrowth] for texts of the given units, by name.
func CheckGrowthOf(tb testing.TB, what string, size int, units map[string]string, f func(text string)) {
	tb.Helper()
	for name, unit := range units {
		tenth, whole := strings.Repeat(unit, size/tenths/len(unit)), strings.Repeat(unit, size/len(unit))
		atOnce, inParts := cpuTime(func() { f(whole) }), time.Duration(0)
		for rounds := 1; atOnce > negligible; rounds++ {
			inParts += cpuTime(func() {
				for range tenths {
					f(tenth)
				}
			})
			slow := atOnce > mostTimes*inParts
			if rounds == 5 && slow {
				tb.Errorf("%s: %s: texts of %d bytes take %s, as many bytes in texts of %d take %s", what, name, len(whole), atOnce, len(tenth), inParts)
			}
			if rounds == 5 || atOnce >= measurable && !slow {
				break
			}
			atOnce += cpuTime(func() { f(whole) })
		}
	}
}
