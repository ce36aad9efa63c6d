package written

import (
	"testing"

	"ebb/sessions/sessionstest"
)

// For any words of a model, in pieces as they come, the check takes time in proportion to their length.
func TestGrowth(t *testing.T) {
	for _, lead := range []string{"", "<tool_call>{", `{"name":"`, "张三(u2): "} {
		sessionstest.CheckGrowth(t, "behind "+lead, 40<<10, func(text string) {
			f := New(config)
			f.Push(lead)
			for s := text; s != ""; {
				k := min(12, len(s))
				f.Push(s[:k])
				s = s[k:]
			}
			f.Finish()
		})
	}
}
