package chaos

import (
	"fmt"
	"strings"
	"testing"

	"ebb/bot/dingtalk/dingtalktest"
	"ebb/cmd/lab/rig"
)

// A month that is used up must not silence people whose webhooks are usable. Without the database no answer is expected.
func TestAnswersInAUsedUpMonth(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*evidence)
		broken bool
	}{
		"silent": {func(*evidence) {}, true},
		"answered by webhook": {func(e *evidence) {
			e.replies = append(e.replies, dingtalktest.Reply{Via: "webhook", Time: at(10_500)})
		}, false},
		"on cards alone": {func(e *evidence) {
			e.replies = append(e.replies, dingtalktest.Reply{Via: "card", Time: at(10_500)})
		}, true},
		"answered afterwards": {func(e *evidence) {
			e.replies = append(e.replies, dingtalktest.Reply{Via: "webhook", Time: at(13_500)})
		}, true},
		"without the database": {func(e *evidence) { e.away = []rig.Interval{{From: at(9000), To: at(11_000)}} }, false},
	} {
		e := &evidence{said: map[string]remark{}, months: []rig.Interval{{From: at(10_000), To: at(13_000)}}}
		for i := range fewestMeanwhile {
			e.said[fmt.Sprint(i)] = remark{pushed: at(10_100 + i)}
		}
		tt.change(e)
		f := &findings{}
		if e.checkMonths(f); strings.Contains(strings.Join(f.broken, ""), "no webhook brought an answer") != tt.broken {
			t.Errorf("%s: found %q", name, f.broken)
		}
	}
}
