package command_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/wording"
	"ebb/memory"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// The receipt lists the facts that its flush added to memory, and counts those that memory held before.
func TestReceiptListsNewFacts(t *testing.T) {
	t.Parallel()
	for command, c := range map[string]struct{ some, none string }{
		"/compact": {"\n- new in memory: 1 (and 1 known before)\n  - the window is open\n", "\n- memory: nothing new was saved (and 1 known before)\n"},
		"/压缩":      {"\n- 新记住 1 件事（另有 1 件早已记得）：\n  - the window is open\n", "\n- 记忆：没有存下新的内容（另有 1 件早已记得）\n"},
	} {
		for name, facts := range map[string][]string{c.some: {"the port is 8443", "the window is open"}, c.none: {"the port is 8443"}} {
			t.Run(command+" "+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					shelf := bottest.NewShelf()
					flush := func(context.Context, llm.Request) (llm.Response, error) { return bottest.SaveCall(facts...), nil }
					w := bottest.Start(t, bottest.Setup{Shelf: shelf, Model: &bottest.Script{Flush: flush}, Config: func(c *bot.Config) { c.Admins = []sessions.UserID{"u-root"} }})
					w.Fill(3000)
					shelf.Remember(memory.Memory{Scope: memory.ScopeGroup, ScopeID: memory.GroupID("robot", "c1"), Kind: memory.KindFact, Content: "the port is 8443"})
					w.Post(bottest.Said("c", "root", command))
					bottest.After(time.Minute)
					if got := w.Wire.Texts()[len(w.Wire.Sends())-1]; !strings.Contains(got, name) {
						t.Errorf("the receipt is %q", got)
					}
				})
			})
		}
	}
}

// An undo states the size that the conversation has when it answers, which messages since the compaction and erasures changed, and the size up
// to which it rests.
func TestUndoStatesTheSizeOfNow(t *testing.T) {
	t.Parallel()
	for command, pattern := range map[string]*regexp.Regexp{
		"/compact undo": regexp.MustCompile(`^↩️ The last compaction is undone: events \d+–\d+ are back in full, and the conversation takes ([\d,]+) tokens now\. It is not compacted by itself before it has grown to ([\d,]+) tokens\.$`),
		"/压缩撤销":         regexp.MustCompile(`^↩️ 已撤销上一次压缩：消息 \d+–\d+ 恢复原文，对话现在占用 ([\d,]+) tokens。增长到 ([\d,]+) tokens 之前不会自动压缩。$`),
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{}, Config: func(c *bot.Config) { c.Admins = []sessions.UserID{"u-root"} }})
				w.Fill(3000)
				w.Post(bottest.Said("c", "root", "/compact"))
				bottest.After(time.Minute)
				w.Post(bottest.Said("since", "alice", bottest.Prose(3, 50)))
				bottest.After(time.Minute)
				if _, err := w.Store.Mem.Erasure.Erase(t.Context(), bottest.Group, []int64{1}); err != nil {
					t.Fatal(err)
				}
				full := bottest.Attempts(t, w.Store.Mem.Compactions)
				w.Post(bottest.Said("u", "root", command))
				bottest.After(time.Minute)
				m := pattern.FindStringSubmatch(w.Wire.Texts()[len(w.Wire.Sends())-1])
				if m == nil {
					t.Fatalf("the answer is %q", w.Wire.Texts()[len(w.Wire.Sends())-1])
				}
				s := w.State(bottest.Group)
				bottest.Want(t, "figures", m[1:], []string{wording.Thousands(s.TotalTokens), wording.Thousands(s.RearmTokens)})
				if then := full[len(full)-1].TokensBefore; s.TotalTokens == then {
					t.Errorf("the conversation has %d tokens again, as before the compaction", then)
				}
			})
		})
	}
}

// The receipt says in plain words what became a summary and what stays, how many tokens a manual compaction freed, and the share of
// newly pinned memory. The figures are those of the compaction log.
func TestReceiptStatesTheFreedTokens(t *testing.T) {
	t.Parallel()
	nothing := func(context.Context, llm.Request) (llm.Response, error) {
		return bottest.Calls(sessions.ToolCall{ID: "f", Name: "memory_save", Arguments: `{"facts":[],"nothing_to_save":true}`}), nil
	}
	for command, pattern := range map[string]*regexp.Regexp{
		"/压缩":      regexp.MustCompile(`^✅ 压缩完成：较早的 (\d+) 条消息概括成了摘要，最近 (\d+) 条保留原文。原话都还在，需要时可以查到。\n\n- 对话占用：([\d,]+) → ([\d,]+) tokens，少了 ([\d,]+)(?:（现在的 [\d,]+ 里新记住的事占 ([\d,]+)）)?\n- 记忆：没有要存的\n(?:- 摘要漏掉的 \d+ 个编号、日期或名称已补上\n)?\n`),
		"/compact": regexp.MustCompile(`^✅ Compacted: (\d+) older messages are a summary now, and the latest (\d+) stay word for word\. The originals are kept and can be looked up\.\n\n- size: ([\d,]+) → ([\d,]+) tokens, ([\d,]+) less(?: \(of these [\d,]+, new memories take ([\d,]+)\))?\n- memory: nothing to save\n(?:- \d+ numbers, dates or names that the summary had left out were added\n)?\n`),
	} {
		for name, pins := range map[string]bool{"as pinned before": false, "with a new fact": true} {
			t.Run(command+" "+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					shelf := bottest.NewShelf()
					w := bottest.Start(t, bottest.Setup{Shelf: shelf, Model: &bottest.Script{Flush: nothing}, Config: func(c *bot.Config) { c.Admins = []sessions.UserID{"u-root"} }})
					w.Fill(3000)
					spoken := len(w.Store.Mem.Events(t.Context(), bottest.Group))
					for i := range 3 {
						w.Post(bottest.Said(fmt.Sprint("status", i), "alice", "/status"))
						w.Post(bottest.Reminding(fmt.Sprint("reminder", i), "alice", "drink"))
						synctest.Wait()
					}
					if pins {
						shelf.Remember(memory.Memory{Content: "the office moves to the third floor in May " + bottest.Prose(7, 40)})
					}
					w.Post(bottest.Said("c", "root", command))
					bottest.After(time.Minute)
					receipt := w.Wire.Texts()[len(w.Wire.Sends())-1]
					m := pattern.FindStringSubmatch(receipt)
					if m == nil {
						t.Fatalf("the receipt begins with %q", receipt)
					}
					figure := func(i int) int {
						n, _ := strconv.Atoi(strings.ReplaceAll(m[i], ",", ""))
						return n
					}
					rows := bottest.Attempts(t, w.Store.Mem.Compactions)
					row := rows[len(rows)-1]
					bottest.Want(t, "messages besides commands and reminders", figure(1)+figure(2), spoken)
					bottest.Want(t, "outcome", row.Outcome, sessions.CompactionCommitted)
					bottest.Want(t, "figures", []int{figure(3), figure(4), figure(5)}, []int{row.TokensBefore, row.TokensAfter, row.TokensBefore - row.TokensAfter})
					if grown := figure(6); grown > 0 != pins || pins && grown < 40 {
						t.Errorf("pinned memory takes %d tokens", grown)
					}
				})
			})
		}
	}
}
