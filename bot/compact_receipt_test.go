package bot

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/llm"
	"ebb/bot/upkeep"
	"ebb/memory"
	"ebb/sessions"
)

// The receipt says how many tokens a manual compaction freed, and names newly pinned memory, which is deducted from them.
// The figures are those of the compaction log.
func TestReceiptStatesTheFreedTokens(t *testing.T) {
	t.Parallel()
	nothing := func(context.Context, llm.Request) (llm.Response, error) {
		return calls(sessions.ToolCall{ID: "f", Name: "memory_save", Arguments: `{"facts":[],"nothing_to_save":true}`}), nil
	}
	for command, pattern := range map[string]*regexp.Regexp{
		"/压缩":      regexp.MustCompile(`^✅ 压缩完成：([\d,]+) → ([\d,]+) tokens，释放 ([\d,]+)(?:（新置顶的记忆占用 ([\d,]+)，已扣除）)?\n`),
		"/compact": regexp.MustCompile(`^✅ Compacted: ([\d,]+) → ([\d,]+) tokens, ([\d,]+) freed(?: \(newly pinned memory takes ([\d,]+), which is deducted\))?\n`),
	} {
		for name, pins := range map[string]bool{"as pinned before": false, "with a new fact": true} {
			t.Run(command+" "+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					shelf := newShelf()
					w := start(t, setup{shelf: shelf, model: &script{flush: nothing}, config: func(c *Config) { c.Admins = []sessions.UserID{"u-root"} }})
					w.fill(3000)
					if pins {
						shelf.remember(memory.Memory{Content: "the office moves to the third floor in May " + prose(7, 40)})
					}
					w.post(said("c", "root", command))
					after(time.Minute)
					receipt := w.wire.texts()[len(w.wire.sends())-1]
					m := pattern.FindStringSubmatch(receipt)
					if m == nil {
						t.Fatalf("the receipt begins with %q", receipt)
					}
					figure := func(i int) int {
						n, _ := strconv.Atoi(strings.ReplaceAll(m[i], ",", ""))
						return n
					}
					rows := attempts(t, w.store.mem)
					row := rows[len(rows)-1]
					want(t, "outcome", row.Outcome, upkeep.OutcomeCommitted)
					want(t, "figures", []int{figure(1), figure(2), figure(3)}, []int{row.TokensBefore, row.TokensAfter, row.TokensBefore - row.TokensAfter})
					if grown := figure(4); grown > 0 != pins || pins && grown < 40 {
						t.Errorf("pinned memory takes %d tokens", grown)
					}
				})
			})
		}
	}
}
