package erasure_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// idleLimit is how long a transaction may ask nothing: see sql/orders/begin.sql.
const idleLimit = 5 * time.Second

// longRange adds messages of 2,000 Chinese characters to a log, and a summary of all of it.
var longRange = []string{
	`INSERT INTO dingtalk_session_events (session_key, seq, role, content, sender_id, sender_nick, msg_id, tokens)
	 SELECT s.session_key, s.last_seq + i, 'user', w.words, 'li02', 'Li', 'long' || i, 2000
	 FROM dingtalk_sessions s, generate_series(1, $1::int) i, LATERAL (
	    SELECT translate(string_agg(md5(i || '/' || j), '' ORDER BY j), '0123456789abcdef', '甲乙丙丁戊己庚辛壬癸鼠牛虎兔龙蛇') AS words
	    FROM generate_series(1, 62) j) w`,
	`INSERT INTO session_summaries (session_key, gen, start_seq, end_seq, start_msg_id, end_msg_id, msg_count, summary, tokens)
	 SELECT s.session_key, s.gen, 1, s.last_seq + $1::int, 1, 1, $1::int,
	    E'- 周会改到周三上午十点\n- 张伟的女儿叫豆豆，在三小上二年级\n- 支付联调的文档在 wiki-4471\n- 发布窗口定在周五', 60
	 FROM dingtalk_sessions s`,
	`UPDATE dingtalk_sessions SET last_seq = last_seq + $1::int, compacted_seq = last_seq + $1::int`,
}

// held measures what transactions that lock a session's row do with their time.
type held struct {
	sync.Mutex
	since, ended map[*pgx.Conn]time.Time
	longest      time.Duration // between two statements
	most         time.Duration // from the lock to the end
}

// TraceQueryStart implements pgx.QueryTracer.
func (h *held) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	h.Lock()
	defer h.Unlock()
	if at, ok := h.ended[conn]; ok && conn.PgConn().TxStatus() == 'T' {
		h.longest = max(h.longest, time.Since(at))
	}
	return context.WithValue(ctx, h, data.SQL)
}

// TraceQueryEnd implements pgx.QueryTracer.
func (h *held) TraceQueryEnd(ctx context.Context, conn *pgx.Conn, _ pgx.TraceQueryEndData) {
	h.Lock()
	defer h.Unlock()
	if conn.PgConn().TxStatus() != 'T' {
		if at, ok := h.since[conn]; ok {
			h.most = max(h.most, time.Since(at))
		}
		delete(h.since, conn)
		delete(h.ended, conn)
		return
	}
	h.ended[conn] = time.Now()
	if _, ok := h.since[conn]; !ok {
		h.since[conn] = h.ended[conn]
	}
}

// An erasure over a long summary compares before it holds the session. It succeeds with the limit that every
// transaction has. Turns of the conversation go on meanwhile, and a message that comes between is erased with the rest.
func TestErasureOverALongSummary(t *testing.T) {
	t.Parallel()
	erase := map[string]func(context.Context, *sql.Store, *storetest.Chat, sessions.Accepted, int64) error{
		"events": func(ctx context.Context, s *sql.Store, c *storetest.Chat, _ sessions.Accepted, _ int64) error {
			_, err := s.Erasure.Erase(ctx, c.Reader.Key, []int64{3, 4})
			return err
		},
		"a message": func(ctx context.Context, s *sql.Store, _ *storetest.Chat, said sessions.Accepted, _ int64) error {
			_, err := s.Erasure.ForgetMessage(ctx, said.EventID, memory.Asking{Lease: sessions.Lease{Key: said.Lease.Key}})
			return err
		},
		"a fact": func(ctx context.Context, s *sql.Store, _ *storetest.Chat, _ sessions.Accepted, fact int64) error {
			_, err := s.Erasure.ForgetMemory(ctx, fact, memory.Asking{})
			return err
		},
		"a person": func(ctx context.Context, s *sql.Store, _ *storetest.Chat, _ sessions.Accepted, _ int64) error {
			_, err := s.Erasure.ForgetPerson(ctx, memory.Forget{Robot: storetest.Robot, Person: storetest.ZhangID})
			return err
		},
	}
	for name, run := range erase {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := sqltest.URL(t)
			_, pool := storetest.Open(t, url)
			h := &held{since: map[*pgx.Conn]time.Time{}, ended: map[*pgx.Conn]time.Time{}}
			s := storetest.OpenTraced(t, url, 4, h)
			c := storetest.NewChat(t, s, "cid", "u", false) // 1 and 2
			events := 1000
			if name == "events" {
				events = 5000
			}
			said := c.Speak("z", storetest.ZhangID, storetest.ZhangNick, "我女儿叫豆豆，在三小上二年级", nil)
			c.Turn(storetest.ZhangID, storetest.ZhangNick, "好的，豆豆，记住了", said) // 3 and 4
			fact := c.Save(storetest.SaidBy(c, "张伟的女儿叫豆豆，在三小上二年级", storetest.ZhangID, 3)).Saved[0]
			for _, statement := range longRange {
				storetest.Execute(t, pool, statement, events)
			}
			ended := make(chan error, 1)
			go func() { ended <- run(t.Context(), s, c, said, fact) }()
			n, slowest := 0, time.Duration(0)
			for under := true; under && n < 200; n++ {
				began := time.Now()
				a := c.Speak(fmt.Sprint("busy", n), storetest.LiID, "Li", fmt.Sprint("收到 ", n), nil)
				if _, err := s.Turns.Commit(t.Context(), a.Lease, sessions.TurnResult{
					Taken: []int64{a.EventID}, TakenTokens: []int{3}, Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: "好的", Tokens: 1}},
				}); err != nil && !errors.Is(err, sessions.ErrLeaseLost) { // the erasure takes the lease
					t.Error(err)
				}
				slowest = max(slowest, time.Since(began))
				under = len(ended) == 0
			}
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			t.Logf("%d turns meanwhile, the slowest in %v; the session was held for %v at most, %v of it without a statement",
				n, slowest.Round(time.Millisecond), h.most.Round(time.Millisecond), h.longest.Round(time.Millisecond))
			if h.longest >= idleLimit {
				t.Errorf("a transaction asked nothing for %v", h.longest)
			}
			if n < 2 {
				t.Errorf("%d turns were committed meanwhile", n)
			}
			storetest.WantGone(t, pool, "豆豆", "三小")
			want := "- 周会改到周三上午十点\n- 支付联调的文档在 wiki-4471\n- 发布窗口定在周五"
			if got := storetest.Collect(t, pool, "SELECT summary FROM session_summaries", pgx.RowTo[string]); len(got) != 1 || got[0] != want {
				t.Errorf("the summary is %q, want %q", got, want)
			}
		})
	}
}
