package reconcile

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ebb/memory"
	"ebb/memory/memorytest"
	"ebb/sessions"
)

// A date that is moved in plain words is in force alone; what only looks alike moves nothing.
func TestRedates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		stored, said string
		moved        bool
	}{
		{"联调定在后天下午三点", "联调改到下周一上午十点", true},
		{"联调定在后天（2026-11-22）下午三点", "联调改到下周一（2026-11-23）上午十点", true},
		{"张伟：联调定在后天下午三点", "李雷：联调改到下周一上午十点", true},
		{"张伟：联调定在后天下午三点", "联调改到下周一上午十点", true},
		{"联调定在后天下午三点", "更正：联调推迟到 11 月 30 日 10:00", true},
		{"联调时间定在后天下午三点", "联调提前到明天，因为客户要来", true},
		{"评审会安排在周四上午", "评审会挪到周五下午 4 点", true},
		{"发布窗口是周四 20:00", "发布窗口改为周五 21:00。", true},
		{"联调推迟到周三", "联调提前到周二", true},
		{"年会定于 2026-12-20", "年会延期到 2027-01-10", true},
		{"王芳：评审在周四", "张伟：因为客户要来，评审改到周五", true},
		{"The rehearsal is on Friday at 3pm", "The rehearsal was moved to Monday 10:00", true},
		{"Alice: the rehearsal is set for Friday", "Bob: the rehearsal has been postponed to 2026-12-01", true},
		{"The rehearsal is on December 1", "The rehearsal was moved to December 8th", true},
		{"我的体检定在周三", "我的体检改到周四", true},

		{"联调定在后天下午三点", "评审改到下周一上午十点", false},               // another thing
		{"支付联调定在后天下午三点", "订单联调改到下周一上午十点", false},           // another one
		{"联调定在后天下午三点", "联调会议室改到下周一", false},                // the room
		{"张伟：联调由王芳主持", "李雷：联调改到下周一上午十点", false},            // who, not when
		{"张伟：联调定在三号会议室", "李雷：联调改到下周一上午十点", false},          // where
		{"张伟：联调定在后天下午三点", "李雷：联调改到五号会议室", false},           // where
		{"张伟：联调定在后天下午三点，由王芳主持", "李雷：联调改到下周一上午十点", false},   // the rest holds
		{"张伟：联调定在后天下午三点", "李雷：联调定在下周一上午十点", false},         // nothing says that it moved
		{"张伟：联调定在后天下午三点", "李雷：它改到下周一上午十点", false},          // the subject is unknown
		{"张伟：我的体检定在周三", "李雷：我的体检改到周四", false},              // two people
		{"张伟：年假定在下周", "李雷：年假改到月底", false},                  // two people
		{"张伟：预算定在 30 万", "李雷：预算改到 40 万", false},            // an amount, and not by date
		{"张伟：联调定在后天下午三点", "李雷：如果联调改到下周一，我就请假", false},      // an if
		{"张伟：第一次联调定在后天", "李雷：第二次联调改到周五", false},            // two of them
		{"张伟：联调环境在 10.0.0.1", "李雷：联调环境改到 10.0.0.2", false}, // no time
		{"Alice: the rehearsal is on Friday", "Bob: the rehearsal was moved to room 5", false},
		{"Alice: the rehearsal is on Friday", "Bob: the launch was moved to Monday", false},
		{"Alice: my flight is on Friday", "Bob: my flight was moved to Monday", false},
	} {
		who := sessions.UserID("u2")
		if strings.HasPrefix(c.stored, "我的") {
			who = "u1" // one person
		}
		var l Ledger
		l.Add(memory.Memory{ID: 1, Content: c.stored, SaidAt: memorytest.Noon, SubjectID: "u1"})
		v := l.Decide(memory.Draft{Content: c.said, SaidAt: memorytest.Noon.Add(time.Hour), SubjectID: who})
		if got := slices.Contains(v.Supersedes, 1); got != c.moved || v.Same != 0 {
			t.Errorf("%q after %q: %+v, want it moved: %v", c.said, c.stored, v, c.moved)
		}
		if v := l.Decide(memory.Draft{Content: c.said, SaidAt: memorytest.Noon.Add(-time.Hour), SubjectID: "u2"}); len(v.Supersedes) != 0 {
			t.Errorf("%q, said before %q, moves it", c.said, c.stored)
		}
	}
}
