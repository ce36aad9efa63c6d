package console_test

import (
	"net/url"
	"strings"
	"testing"
)

// A conversation of unknown kind is masked like a private chat on the pages of compactions too.
func TestUnknownKindIsMaskedOnCompactionPages(t *testing.T) {
	t.Parallel()
	w := open(t)
	b := w.enter(w.serve(nil), viewerToken)
	w.execute("UPDATE dingtalk_sessions SET conversation_type = '' WHERE session_key = '" + groupKey + "'")
	w.execute("UPDATE compaction_log SET focus = '发布窗口'")
	one := "/compactions/" + url.PathEscape(groupKey) + "/" + number(scan[int64](w, "SELECT id FROM compaction_log"))
	for _, path := range []string{"/compactions", one} {
		if status, page := b.get(path); status != 200 || strings.Contains(page, "支付网关发布") || strings.Contains(page, "发布窗口") || strings.Contains(page, "摘要：订单号") {
			t.Errorf("%s is %d and shows the chat: %s", path, status, around(page, "支付网关发布"))
		}
	}
}
