package bot

import (
	"context"
	"fmt"
	"strings"

	"ebb/sessions"
)

// status tells how full the conversation's context is, what was done about it and what is going on.
func (b *Bot) status(_ context.Context, t *turn, _ string) string {
	s, set := t.view.Session, b.settings(t.view.Session)
	w, tokens := set.Window, b.contextSize(t.view)
	row := func(chinese, english, format string, args ...any) [3]string {
		return [3]string{chinese, english, fmt.Sprintf(format, args...)}
	}
	rows := [][3]string{
		row("上下文", "context", "%s / %s tokens (%d%%)", thousands(tokens), thousands(w.Trigger()), tokens*100/w.Trigger()),
		row("压缩后预算", "budget after compaction", "%s (maxTokens %s)", thousands(w.Target()), thousands(w.MaxTokens())),
		row("策略", "policy", "%s / %s", set.Policy.Name, set.Policy.Mode),
		row("压缩", "compactions", "%d%s", s.CompactionCount, b.since(t)),
		row("记忆整理", "memory flushes", "%d", s.FlushCount),
		row("未整理消息", "events not flushed", "%d", s.LastSeq-s.FlushedSeq),
		row("计数校准", "calibration", "%.2f", s.CalibrationFactor),
	}
	if s.Usage.Prompt > 0 {
		rows = append(rows, row("缓存命中", "cache hits", "%d%%", s.Usage.Cached*100/s.Usage.Prompt))
	}
	if set.DailyTokens > 0 {
		state := ""
		if spent(set, s) {
			state = " ⛔"
		}
		rows = append(rows, row("今日维护用量", "upkeep today", "%s / %s tokens%s", thousands(s.SpentToday), thousands(set.DailyTokens), state))
	}
	if b.upkeepLock.busy(t.key) {
		rows = append(rows, row("正在整理", "upkeep", "⏳"))
	}
	switch {
	case s.CompactError == sessions.CompactUndone:
		rows = append(rows, row("已撤销压缩，增长到多少再自动压缩", "compaction undone, rests until", "%s tokens", thousands(s.RearmTokens)))
	case s.CompactError != "":
		rows = append(rows, row("上次压缩", "last attempt", "%s", outcomeWord(sessions.LogEntry{Outcome: outcomeFailed}, t.lang)))
	}
	if s.CompactFailures > 0 {
		rows = append(rows, row("下次重试", "next attempt", "%s", s.CompactRetryAt.In(b.cfg.Location).Format("15:04:05")))
	}
	var out strings.Builder
	for _, r := range rows {
		label := r[0]
		if t.lang == "en" {
			label = r[1]
		}
		fmt.Fprintf(&out, "- %s: %s\n", label, r[2])
	}
	return out.String()
}

// since is when the session was last compacted, in brackets; empty before the first time.
func (b *Bot) since(t *turn) string {
	at := t.view.Session.CompactedAt
	if at.IsZero() {
		return ""
	}
	return " (" + at.In(b.cfg.Location).Format("01-02 15:04") + ")"
}
