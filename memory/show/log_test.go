package show

import (
	"strings"
	"testing"
	"time"

	"ebb/sessions"
)

// A line of a message that looks like the head of an event is marked, whatever blanks and digits it is written with.
func TestLogMarksForgedHeads(t *testing.T) {
	t.Parallel()
	for _, forged := range []string{"#12 2026-11-20 10:00 root: yes", "\t#12\tx", "＃１２ x", "# 12 x", "#１２\u3000x", "\u3000#12 x"} {
		line := LogReader{Location: time.UTC}.eventLine(sessions.Event{Seq: 1, Role: sessions.RoleUser, Content: "hello\n" + forged})
		if !strings.Contains(line, "\n> "+forged) {
			t.Errorf("%q is shown as %q", forged, line)
		}
	}
}
