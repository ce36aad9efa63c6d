package bot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/rs/zerolog"

	"ebb/compaction"
	"ebb/sessions"
)

// commandNamed is the slash command of a name, in Chinese or English; nil where there is none.
func commandNamed(name string) func(*Bot, context.Context, *turn, string) string {
	switch name {
	case "status", "状态":
		return (*Bot).status
	case "compact", "压缩":
		return (*Bot).compactNow
	case "help", "帮助":
		return (*Bot).help
	}
	return nil
}

// parseCommand splits "/compact the numbers" into its name and the rest.
func parseCommand(text string) (name, rest string) {
	text, ok := strings.CutPrefix(strings.TrimSpace(text), "/")
	if !ok {
		return "", ""
	}
	if at := strings.IndexFunc(text, unicode.IsSpace); at >= 0 {
		text, rest = text[:at], text[at:]
	}
	return strings.ToLower(text), strings.TrimSpace(rest)
}

func isCommand(text string) bool {
	name, _ := parseCommand(text)
	return commandNamed(name) != nil
}

// command runs the turn's command and returns what to tell the conversation.
func (b *Bot) command(ctx context.Context, t *turn) string {
	name, rest := parseCommand(b.ownWords(t.asked[0]))
	t.lang = b.cfg.Language
	return commandNamed(name)(b, ctx, t, rest)
}

func (b *Bot) help(_ context.Context, t *turn, _ string) string { return say(sayHelp, t.lang) }

// status tells the figures of the conversation's context.
func (b *Bot) status(_ context.Context, t *turn, _ string) string {
	s, w := t.view.Session, b.frame.window
	tokens := b.contextSize(t.view)
	last, retry := "-", "-"
	if s.CompactFailures > 0 {
		retry = s.CompactRetryAt.In(b.cfg.Location).Format("15:04:05")
	}
	if n := len(t.view.Summaries); n > 0 {
		last = t.view.Summaries[n-1].CreatedAt.In(b.cfg.Location).Format("01-02 15:04")
	}
	rows := [][3]string{
		{"上下文", "context", fmt.Sprintf("%s / %s tokens (%d%%)", thousands(tokens), thousands(w.Trigger()), tokens*100/w.Trigger())},
		{"压缩后预算", "budget after compaction", thousands(w.Target()) + " (" + thousands(w.MaxTokens()) + ")"},
		{"窗口", "window", thousands(w.Context) + " − " + thousands(w.Reserve)},
		{"策略", "policy", b.policy.Name + " / " + modeSummaryOnly},
		{"记忆整理", "memory flushes", fmt.Sprint(s.FlushCount)},
		{"压缩", "compactions", fmt.Sprint(s.CompactionCount)},
		{"上次压缩", "last compaction", last},
		{"未整理消息", "events not flushed", fmt.Sprint(s.LastSeq - s.FlushedSeq)},
		{"模型上次计数", "last count by the model", thousands(s.ObservedTokens)},
		{"计数校准", "calibration", fmt.Sprintf("%.2f", s.CalibrationFactor)},
		{"下次重试", "next retry", retry},
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

// compactNow compacts at once and tells what it did.
func (b *Bot) compactNow(ctx context.Context, t *turn, focus string) string {
	if !b.mayCompact(t.asked[0]) {
		return say(sayNotAdmin, t.lang)
	}
	e, err := b.compact(ctx, t.lease, triggerManual, focus, nil)
	switch {
	case nothingToCompact(err):
		return say(sayNothingToCompact, t.lang, nothingWord(err, t.lang))
	case err != nil && e.Outcome == outcomeRejected:
		return say(sayNoGain, t.lang)
	case err != nil:
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Manual compaction failed")
		return say(sayCompactFailed, t.lang)
	}
	if v, err := b.store.Begin(ctx, t.lease, 0); err == nil {
		v.Pending = t.view.Pending
		t.view = v
	}
	if t.lang == "en" {
		return fmt.Sprintf("✅ Compacted: %s → %s tokens, %s freed\n\n- policy %s, mode %s, model %s\n- events %d–%d\n- memory: %s\n- took %s",
			thousands(e.TokensBefore), thousands(e.TokensAfter), thousands(e.TokensBefore-e.TokensAfter),
			e.Policy, e.Mode, e.Model, e.StartSeq, e.EndSeq, e.FlushOutcome, e.Duration.Round(time.Millisecond))
	}
	return fmt.Sprintf("✅ 压缩完成：%s → %s tokens，释放 %s\n\n- 策略 %s，模式 %s，模型 %s\n- 消息 %d–%d\n- 记忆：%s\n- 用时 %s",
		thousands(e.TokensBefore), thousands(e.TokensAfter), thousands(e.TokensBefore-e.TokensAfter),
		e.Policy, e.Mode, e.Model, e.StartSeq, e.EndSeq, flushWord(e.FlushOutcome), e.Duration.Round(time.Millisecond))
}

// flushWord is the outcome of a flush, as the compaction log has it, in Chinese.
func flushWord(outcome string) string {
	return strings.NewReplacer("saved", "存下", "known", "已有", "nothing to save", "没有要存的", "done before", "这一轮已整理", "owed", "未完成，稍后补上", "off", "关闭").Replace(outcome)
}

// nothingWord is why there is nothing to compact, in words for people.
func nothingWord(err error, lang string) string {
	switch full := errors.Is(err, compaction.ErrSystemDominates); {
	case full && lang == "en":
		return "the system prompt, the tools and pinned memory fill the window; an administrator has to shorten the prompt or raise the thresholds"
	case full:
		return "系统提示、工具和置顶记忆占满了窗口，需要管理员缩短提示词或调高阈值"
	case lang == "en":
		return compaction.ErrAllRecent.Error()
	}
	return "都是最近的消息"
}

// mayCompact reports whether the sender of a message may compact: anyone in a private chat, administrators in a group.
// Who has no staff id is a stranger to the organisation.
func (b *Bot) mayCompact(e sessions.Event) bool {
	m := e.Message
	if m == nil {
		return false
	}
	return m.ConversationType == sessions.Private || m.StaffID != "" && (m.Admin || slices.Contains(b.cfg.Admins, m.StaffID))
}

// thousands writes 64000 as 64,000.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
