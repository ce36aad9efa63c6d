package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/bot/openai/openaitest"
)

// query returns the rows of a query, one a line, with their columns set apart by bars. Its connection is kept: a poll that
// opened one each time would keep a core busy.
func (w *world) query(statement string) ([]string, error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Second)
	defer cancel()
	if w.reader != nil && w.readerOf == w.url {
		rows, err := readRows(ctx, w.reader, statement)
		if err == nil || !w.reader.IsClosed() {
			return rows, err
		}
	}
	if err := w.openReader(ctx); err != nil {
		return nil, err
	}
	return readRows(ctx, w.reader, statement)
}

// openReader replaces the connection of queries.
func (w *world) openReader(ctx context.Context) error {
	w.closeReader()
	config, err := pgx.ParseConfig(w.url)
	if err != nil {
		return err
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeDescribeExec // a migration may change the types of a statement
	w.reader, err = pgx.ConnectConfig(ctx, config)
	w.readerOf = w.url
	return err
}

func (w *world) closeReader() {
	if w.reader == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.t.Context()), 5*time.Second)
	defer cancel()
	_ = w.reader.Close(ctx) // the server may be gone
	w.reader = nil
}

func readRows(ctx context.Context, conn *pgx.Conn, statement string) ([]string, error) {
	rows, err := conn.Query(ctx, statement)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			return nil, err
		}
		var row []string
		for _, v := range values {
			if v == nil {
				v = ""
			}
			row = append(row, fmt.Sprint(v))
		}
		out = append(out, strings.Join(row, "|"))
	}
	return out, rows.Err()
}

func (w *world) cmdSQL(args []string) error {
	return w.until(fmt.Sprintf("%s to give %q", args[0], args[1]), patience, func() (bool, string) {
		rows, err := w.query(args[0])
		if err != nil {
			return false, err.Error()
		}
		got := strings.Join(rows, ";")
		return got == args[1], strconv.Quote(got)
	})
}

// cmdGranted is: first|N. The lease of the only session was granted N times. "first" notes its first term, which depends on the moment:
// a sweep may create the row of a session whose first message is being stored.
func (w *world) cmdGranted(args []string) error {
	const term = "SELECT lease_term FROM dingtalk_sessions"
	if args[0] != "first" {
		return w.cmdSQL([]string{fmt.Sprintf("SELECT lease_term - %s + 1 FROM dingtalk_sessions", w.firstTerm), args[0]})
	}
	rows, err := w.query(term)
	if err == nil && len(rows) != 1 {
		err = fmt.Errorf("%d sessions", len(rows))
	}
	if err != nil {
		return fmt.Errorf("the first term of the only session: %w", err)
	}
	w.firstTerm = rows[0]
	return nil
}

func (w *world) cmdSettled([]string) error { return w.settle() }

// settle waits until DingTalk waits for no ack, no message for its answer, and no reply to be sent.
func (w *world) settle() error {
	return w.until("everything to settle", patience, func() (bool, string) {
		if n := w.ding.State().Unacked; n > 0 {
			return false, fmt.Sprintf("%d messages are not acknowledged", n)
		}
		rows, err := w.query(`SELECT (SELECT count(*) FROM dingtalk_session_events WHERE state = 'pending'),
			(SELECT count(*) FROM outbox WHERE state IN ('sending', 'waiting'))`)
		if err != nil {
			return false, err.Error()
		}
		return rows[0] == "0|0", "messages waiting|replies waiting: " + rows[0]
	})
}

// cmdFlood has as many people ask one question each, without waiting for an answer.
func (w *world) cmdFlood(args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	for range n {
		w.said++
		who, id := fmt.Sprint("员工", w.said), fmt.Sprint("flood-", w.said)
		if err := w.cmdSay([]string{args[0], who, id, fmt.Sprintf("Q%d 这个怎么办", 1000+w.said)}); err != nil {
			return err
		}
	}
	return nil
}

// cmdPester has a person say a word that the provider refuses, again and again, and another one ask in between. It logs the requests.
func (w *world) cmdPester(args []string) error {
	conversation, word, harmful, other := args[0], args[2], args[3], args[4]
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	most, err := strconv.Atoi(args[5])
	if err != nil {
		return err
	}
	probe := which("你好")
	before, probes := len(w.main.Requests()), w.main.count(probe)
	var asked []string
	for range n {
		w.said += 2
		question := fmt.Sprintf("Q%d", 1000+w.said)
		asked = append(asked, question)
		if err := w.cmdSay([]string{conversation, harmful, "harm-" + question, fmt.Sprintf("Q%d %s", 999+w.said, word)}); err != nil {
			return err
		}
		if err := w.cmdSay([]string{conversation, other, "other-" + question, question + " 这个怎么办"}); err != nil {
			return err
		}
		if err := w.cmdReply([]string{conversation, fmt.Sprintf("A%d", 1000+w.said)}); err != nil {
			return err
		}
	}
	if err := w.settle(); err != nil {
		return err
	}
	all, largest := 0, 0
	for _, question := range asked {
		requests := w.main.count(func(r openaitest.Request) bool { return which(question)(r) && !probe(r) })
		all, largest = all+requests, max(largest, requests)
	}
	requests := len(w.main.Requests()) - before
	w.t.Logf("%d requests for the %d questions, %d at most; %.1f for each of the other messages, with %d probes in all", all, n, largest, float64(requests-all)/float64(n), w.main.count(probe)-probes)
	switch {
	case largest > most:
		return fmt.Errorf("a question cost %d requests, want at most %d", largest, most)
	case requests-all > 4*n:
		return fmt.Errorf("%d messages cost %d requests", n, requests-all)
	}
	return nil
}

// cmdTalk has three people talk in turns, each message answered before the next. Every fourth is a fact.
func (w *world) cmdTalk(args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	people := []string{"张伟", "李娜", "王芳"}
	for range n {
		w.said++
		text := smallTalk(w.said)
		if w.said%4 == 0 {
			fact := fmt.Sprintf("FACT-%d号端口%d", w.said, 30000+w.said*37)
			w.facts = append(w.facts, fact)
			text = "决定 " + fact + "，请大家照此更新配置。" + text
		}
		question := fmt.Sprintf("Q%d ", 1000+w.said)
		msg := []string{args[0], people[w.said%len(people)], fmt.Sprintf("talk-%d", w.said), question + text}
		if err := w.cmdSay(msg); err != nil {
			return err
		}
		if err := w.cmdReply([]string{args[0], fmt.Sprintf("A%d", 1000+w.said)}); err != nil {
			return err
		}
	}
	return nil
}

// smallTalk is the nth piece of talk: of ordinary length, about many things, without a question or a fact.
func smallTalk(n int) string {
	things := []string{"网关", "订单库", "缓存集群", "日志平台", "测试环境", "监控看板", "发布流水线", "消息队列", "对账脚本", "登录页", "搜索服务"}
	doings := []string{"今天跑得比较平稳", "昨晚重启过一轮", "还在等同事回来看", "刚换了一批机器", "正在补充文档", "准备下午再压一次", "已经合并到主干"}
	moods := []string{"先记在这里。", "大家有空看看。", "我这边继续跟进。", "晚点再同步进展。", "其他的照旧。"}
	return fmt.Sprintf("%s%s，%s%s，%s%s%s", things[n%11], doings[n%7], things[(n*3+1)%11], doings[(n*2+3)%7],
		things[(n*5+2)%11], doings[(n*4+5)%7], moods[n%5])
}

// cmdContext waits until the context of the only conversation is below a number of tokens, and logs the work that it
// took.
func (w *world) cmdContext(args []string) error {
	within, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	began := time.Now()
	if err := w.state("SELECT total_tokens < "+args[1]+", total_tokens, compact_error FROM dingtalk_sessions", within); err != nil {
		return err
	}
	rows, err := w.query("SELECT outcome, count(*), sum(tokens_before - tokens_after) FROM compaction_log GROUP BY outcome ORDER BY outcome")
	w.t.Logf("below %s tokens after %s: attempts and tokens freed %v, %d calls for summaries and %d for facts", args[1],
		time.Since(began).Round(time.Second), rows, w.main.count(which("summary")), w.main.count(which("flush")))
	return err
}

// cmdSpent waits until the only conversation has used up its tokens of today.
func (w *world) cmdSpent(args []string) error {
	within, err := time.ParseDuration(args[0])
	if err != nil {
		return err
	}
	daily := w.config["agent"].(map[string]any)["compaction"].(map[string]any)["daily_tokens"]
	return w.state(fmt.Sprintf("SELECT spent_tokens >= %v, spent_tokens FROM dingtalk_sessions", daily), within)
}

// state waits until the first column of a query of one row is true.
func (w *world) state(query string, within time.Duration) error {
	return w.until(query, within, func() (bool, string) {
		rows, err := w.query(query)
		if err != nil || len(rows) != 1 {
			return false, fmt.Sprint(rows, err)
		}
		return strings.HasPrefix(rows[0], "true"), rows[0]
	})
}

// cmdKept writes the conversation that an older bot kept: a number of messages by three people and the bot, each of a
// number of pieces of talk. Every eighth is a fact.
func (w *world) cmdKept(args []string) error {
	messages, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	pieces, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	var file bytes.Buffer
	lines := json.NewEncoder(&file)
	if err := lines.Encode(map[string]any{"_type": "metadata", "last_consolidated": 0}); err != nil {
		return err
	}
	people := []string{"张伟", "李娜", "王芳"}
	for n := range messages {
		var text strings.Builder
		if n%8 == 0 {
			fmt.Fprintf(&text, "决定 FACT-%d号端口%d，请大家照此更新配置。", n, 30000+n)
		}
		for i := range pieces {
			text.WriteString(smallTalk(n*pieces + i))
		}
		line := map[string]any{"role": "assistant", "content": text.String()}
		if n%2 == 0 {
			line["role"], line["sender"] = "user", people[n%len(people)]
		}
		if err := lines.Encode(line); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(w.dir, args[0]), file.Bytes(), 0o600)
}

func (w *world) cmdFacts(args []string) error {
	want, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	if len(w.facts) != want {
		return fmt.Errorf("%d facts were said, want %d", len(w.facts), want)
	}
	saved, err := w.query("SELECT content FROM memories")
	if err != nil {
		return err
	}
	all := strings.Join(saved, "\n") + w.main.newest()
	for _, f := range w.facts {
		if !strings.Contains(all, f) {
			return fmt.Errorf("%q is neither in memory nor in the newest request", f)
		}
	}
	return nil
}
