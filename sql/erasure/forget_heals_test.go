package erasure_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/storetest"
)

// A member who forgets one fact of a long conversation takes its lines from every version of the summary. Other
// members' statements stay in the summary, and the context does not grow.
func TestForgettingAFactHealsSummaries(t *testing.T) {
	t.Parallel()
	s, pool, c := storetest.OpenChat(t)
	var prompts []string
	at := int64(0)
	compact := func(through int64, lines ...string) {
		t.Helper()
		prompts = append(prompts, lines...)
		one := sessions.NewSummary{StartSeq: 1, EndSeq: through, Text: "## 用户与身份\n- " + strings.Join(prompts, "\n- "), Tokens: 20 * len(prompts)}
		storetest.Must[sessions.Compacted](t)(s.Compactions.Compact(t.Context(), c.Lease, sessions.Compaction{From: at, Through: through, Summaries: []sessions.NewSummary{one}}))
		at = through
	}
	c.Exchange(storetest.ZhangID, "我女儿叫豆豆，在三小上二年级", "好的，豆豆，记住了") // 3 and 4
	c.Exchange(storetest.LiID, "周会改到周三上午十点", "好的")               // 5 and 6
	id := c.Save(storetest.SaidBy(c, "张伟的女儿叫豆豆，在三小上二年级", storetest.ZhangID, 3)).Saved[0]
	compact(6, "张伟：女儿豆豆读三小二年级", "李娜：周会改到周三上午十点")
	c.Exchange(storetest.LiID, "支付联调的文档在 wiki-4471", "好的") // 7 and 8
	compact(8, "支付联调的文档：wiki-4471")
	c.Exchange(storetest.LiID, "发布窗口定在周五", "好的") // 9 and 10
	compact(10, "发布窗口定在周五")
	before := storetest.Must[sessions.Session](t)(s.Sessions.Session(t.Context(), c.Reader.Key))
	done := forget(c, id, storetest.ZhangID, true)
	if done.Healed != 1 || done.Summaries != 0 || done.Memories != 1 {
		t.Errorf("forgetting gave %+v, want one healed summary", done)
	}
	storetest.WantGone(t, pool, "豆豆", "三小")
	want := "## 用户与身份\n- 李娜：周会改到周三上午十点\n- 支付联调的文档：wiki-4471\n- 发布窗口定在周五"
	if got := storetest.Collect(t, pool, "SELECT summary FROM session_summaries WHERE status = 'active'", pgx.RowTo[string]); len(got) != 1 || got[0] != want {
		t.Errorf("the view has %q, want %q", got, want)
	}
	now := storetest.Must[sessions.Session](t)(s.Sessions.Session(t.Context(), c.Reader.Key))
	if now.TotalTokens > before.TotalTokens || now.CompactedSeq != before.CompactedSeq {
		t.Errorf("%d tokens up to %d became %d up to %d", before.TotalTokens, before.CompactedSeq, now.TotalTokens, now.CompactedSeq)
	}
	if _, err := s.Compactions.Undo(t.Context(), done.Lease, 0, 0); err != nil {
		t.Errorf("an undo after that gave %v", err)
	}
	storetest.WantGone(t, pool, "豆豆", "三小")
}
