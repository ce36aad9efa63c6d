package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/approval"
	"ebb/bot/parts"
	"ebb/bot/upkeep"
	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/memory"
	"ebb/sessions"
)

// statusCommand is /status: for members in words, for administrators in figures.
type statusCommand struct {
	shared *parts.Shared
	views  *view.Builder
	roles  roles
	ledger ledger
	cards  interface {
		GivenUpCards(ctx context.Context) (int, error)
	}
	withheld interface {
		CountWithheld(ctx context.Context, key sessions.Key, reads sessions.ModelID) (sessions.WithheldCount, error)
	}
	flushes interface {
		Owed(ctx context.Context, key sessions.Key) (memory.Debt, error)
	}
	desk   *approval.Desk
	rights memory.Rights
	busy   func(sessions.Key) bool
	calls  func(sessions.RobotCode) CallBudget // nil: none are counted

	t       *view.CommandTurn
	isAdmin bool
}

func statusOf(e *env) statusCommand {
	return statusCommand{
		shared: e.shared, views: e.views, roles: e.roles(), ledger: e.stores.Ledger, cards: e.stores.Cards, withheld: e.stores.Withheld, flushes: e.stores.Flushes,
		desk: e.opts.Approvals, rights: e.opts.Rights, busy: e.worker.Busy, calls: e.opts.CallBudget,
	}
}

func (r statusCommand) show(ctx context.Context, t *view.CommandTurn, _ Call) string {
	r.t, r.isAdmin = t, r.roles.isAdmin(t.Asked)
	if r.isAdmin {
		return r.figures(ctx) + r.waiting(ctx)
	}
	return r.plain(ctx) + r.waiting(ctx)
}

// waiting lists the calls of tools that wait for approval.
func (r statusCommand) waiting(ctx context.Context) string {
	lines, n, err := r.desk.ListOpen(ctx, r.t.Lease.Key, r.t.Lang)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to read waiting approvals")
	}
	if n == 0 {
		return ""
	}
	return "\n" + wording.Say(wording.StatusApprovals, r.t.Lang, n) + "\n\n" + lines
}

// plain is for members: what they can notice or act on. At most one line says what upkeep does, the present state before the past
// one.
func (r statusCommand) plain(ctx context.Context) string {
	t := r.t
	s, set := t.View.Session, r.views.Choices.Settings(t.View.Session)
	var out strings.Builder
	line := func(p wording.Phrase, args ...any) { fmt.Fprintf(&out, "- %s\n", wording.Say(p, t.Lang, args...)) }
	line(wording.StatusRoom, r.views.Sizes.ContextSize(t.View)*100/set.Window.Trigger())
	if s.CompactionCount > 0 {
		line(wording.StatusSummed, s.CompactionCount, since(t.View.Session, r.shared.Location))
	}
	line(wording.StatusFacts, r.known(ctx))
	if _, err := r.flushes.Owed(ctx, t.Lease.Key); err == nil {
		line(wording.StatusOwed)
	}
	c := r.countWithheld(ctx)
	if c.Events > 0 {
		line(wording.StatusWithheld, c.Events, r.newest(c))
	}
	if c.Summaries+c.Facts > 0 {
		line(wording.StatusWithheldMemory, c.Summaries, c.Facts)
	}
	if r.shared.Current.WithoutTools(r.views.Choices.Model(s)) {
		line(wording.StatusNoTools)
	}
	if away := r.views.Frames.Outside().Away(s.ConversationID, s.ConversationType); len(away) > 0 {
		line(wording.StatusServersAway, strings.Join(away, ", "))
	}
	switch {
	case r.busy(t.Lease.Key):
		line(wording.StatusBusy)
	case view.Spent(set, s):
		line(wording.StatusSpent)
	case s.CompactError != "" && s.CompactError != sessions.CompactUndone:
		line(wording.StatusFailed, upkeep.ParseReason(s.CompactError).Describe(t.Lang))
	}
	return out.String()
}

// figures is for administrators. A row is there only if its figure says something, so that a healthy conversation has a short list.
func (r statusCommand) figures(ctx context.Context) string {
	t := r.t
	s, set := t.View.Session, r.views.Choices.Settings(t.View.Session)
	w, tokens := set.Window, r.views.Sizes.ContextSize(t.View)
	row := func(chinese, english, format string, args ...any) [3]string {
		return [3]string{chinese, english, wording.Count(format, args...)}
	}
	rows := [][3]string{
		row("上下文", "context", "%s / %s token{|s} (%d%%)", wording.Thousands(tokens), wording.Thousands(w.Trigger()), tokens*100/w.Trigger()),
		row("压缩后预算", "budget after compaction", "%s (maxTokens %s)", wording.Thousands(w.Target()), wording.Thousands(w.MaxTokens())),
		row("策略", "policy", "%s / %s", set.Policy.Name, set.Policy.Mode),
		row("本会话设置", "own settings", "%s", r.ownSettings(s)),
		row("压缩", "compactions", "%d%s", s.CompactionCount, since(t.View.Session, r.shared.Location)),
		row("记忆整理", "memory flushes", "%d", s.FlushCount),
		row("未整理消息", "events not flushed", "%d%s", unflushed(t.View), r.owed(ctx)),
		row("这里可用的记忆", "facts known here", "%s", r.known(ctx)),
		row("计数校准", "calibration", "%.2f", s.CalibrationFactor),
	}
	if left, parts := backlogOf(r.views, t.View); parts > 1 || parts == 1 && view.Spent(set, s) {
		today := wording.Thousands(s.SpentToday)
		if set.DailyTokens > 0 {
			today += " / " + wording.Thousands(set.DailyTokens)
		}
		rows = append(rows, row("积压", "backlog", "%s", wording.Say(wording.Backlog, t.Lang, wording.Thousands(left), parts, today, backlogWord(r.views.Choices.Settings(s), s, t.Lang))))
	}
	if s.Usage.Prompt > 0 {
		rows = append(rows, row("缓存命中", "cache hits", "%d%%", s.Usage.Cached*100/s.Usage.Prompt))
	}
	if set.DailyTokens > 0 {
		state := ""
		if view.Spent(set, s) {
			state = " ⛔"
		}
		rows = append(rows, row("今日维护用量", "upkeep today", "%s / %s token{|s}%s", wording.Thousands(s.SpentToday), wording.Thousands(set.DailyTokens), state))
	}
	if spent := spentSince(ctx, r.ledger, t, r.shared.Now(), r.shared.Current.Get().Currency); spent != "" {
		rows = append(rows, row("今日用量", "today", "%s", spent))
	}
	if r.calls != nil {
		rows = append(rows, row("本月钉钉 API 调用", "DingTalk API calls this month", "%s", callsLine(r.calls(t.View.Session.RobotCode), t.Lang)))
	}
	if n, err := r.cards.GivenUpCards(ctx); err == nil && n > 0 {
		rows = append(rows, row("没能结束的卡片", "cards without an end", "%d", n))
	}
	c := r.countWithheld(ctx)
	if c.Events > 0 {
		rows = append(rows, row("不发给模型的消息（服务商拒绝）", "messages kept from the model (refused by its provider)", "%s", wording.Say(wording.WithheldCount, t.Lang, c.Events, r.newest(c))))
	}
	if c.Summaries+c.Facts > 0 {
		rows = append(rows, row("不发给模型的摘要和记忆（服务商拒绝）", "memory kept from the model (refused by its provider)", "%s", wording.Say(wording.WithheldMemory, t.Lang, c.Summaries, c.Facts)))
	}
	if r.shared.Current.WithoutTools(r.views.Choices.Model(s)) {
		rows = append(rows, row("模型", "model", "%s", wording.Say(wording.StatusNoTools, t.Lang)))
	}
	if away := r.views.Frames.Outside().Away(s.ConversationID, s.ConversationType); len(away) > 0 {
		rows = append(rows, row("连不上的工具服务", "servers of tools that are away", "%s", strings.Join(away, ", ")))
	}
	if odd := r.views.Frames.Outside().Odd(s.ConversationID, s.ConversationType); len(odd) > 0 {
		shown := wording.Literal(strings.Join(odd[:min(5, len(odd))], "; "))
		rows = append(rows, row("没有提供或改了名的工具", "tools left out or renamed", "%d: %s", len(odd), shown))
	}
	if r.busy(t.Lease.Key) {
		rows = append(rows, row("正在整理", "upkeep", "⏳"))
	}
	switch grown := set.RestsUntil(s, tokens); {
	case grown > 0:
		rows = append(rows, row("已撤销压缩，增长到多少再自动压缩", "compaction undone, rests until", "%s token{|s}", wording.Thousands(grown)))
	case s.CompactError != "" && s.CompactError != sessions.CompactUndone:
		rows = append(rows, row("上次压缩", "last attempt", "%s", outcomeWord(sessions.LogEntry{Outcome: sessions.CompactionFailed, Error: s.CompactError}, t.Lang)))
	}
	if s.CompactFailures > 0 {
		rows = append(rows, row("下次重试", "next attempt", "%s", s.CompactRetryAt.In(r.shared.Location).Format("15:04:05")))
	}
	var out strings.Builder
	for _, one := range rows {
		label := one[0]
		if t.Lang == "en" {
			label = one[1]
		}
		fmt.Fprintf(&out, "- %s%s%s\n", label, wording.Say(wording.Colon, t.Lang), one[2])
	}
	return out.String()
}

// countWithheld counts what the conversation's model refuses.
func (r statusCommand) countWithheld(ctx context.Context) sessions.WithheldCount {
	c, err := r.withheld.CountWithheld(ctx, r.t.Lease.Key, r.views.Choices.Reads(r.t.View.Session))
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to count messages that the provider refuses")
	}
	return c
}

// newest is the author of the newest of these messages, without its words.
func (r statusCommand) newest(c sessions.WithheldCount) string {
	switch c.Newest.Role {
	case sessions.RoleUser:
		if nick := sessions.Nick(c.Newest.SenderNick); nick != "" {
			return nick
		}
		return wording.Say(wording.WithheldMember, r.t.Lang)
	case sessions.RoleTool:
		return wording.Say(wording.WithheldTool, r.t.Lang)
	}
	return wording.Say(wording.WithheldBot, r.t.Lang)
}

func (r statusCommand) ownSettings(s sessions.Session) string {
	line := settingsLine(s.Settings, r.t.Lang)
	if s.Settings == "" || r.shared.Current.For(s.Key).Own == nil {
		return wording.Say(wording.UsageNone, r.t.Lang)
	}
	if _, err := r.views.Choices.Resolve(s.ConversationID, s.Settings); err != nil {
		line += " ⚠️ " + faultWord(err, r.t.Lang)
	}
	return line
}

var kindWords = map[sessions.SpentKind][2]string{
	sessions.SpentTurn:          {"回答", "answers"},
	sessions.SpentFlush:         {"记忆整理", "memory flushes"},
	sessions.SpentSummary:       {"压缩", "compactions"},
	sessions.SpentDigest:        {"每日摘要", "digests"},
	sessions.SpentConsolidation: {"记忆合并", "memory consolidation"},
	sessions.SpentProbe:         {"排查", "probes"},
}

// spentSince is empty before the first model call.
func spentSince(ctx context.Context, spending ledger, t *view.CommandTurn, since time.Time, currency string) string {
	all, err := spending.Spent(ctx, t.Lease.Key, since)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to read the usage of a conversation")
		return "?"
	}
	if len(all) == 0 {
		return ""
	}
	parts, cost := make([]string, len(all)), 0.0
	for i, one := range all {
		word := kindWords[one.Kind][0]
		if t.Lang == "en" {
			word = kindWords[one.Kind][1]
		}
		parts[i] = word + " " + wording.Thousands(one.Usage.Prompt+one.Usage.Completion)
		cost += one.Cost
	}
	list := strings.Join(parts, wording.Say(wording.Comma, t.Lang))
	if cost == 0 {
		return wording.Say(wording.Unpriced, t.Lang, list)
	}
	return wording.Say(wording.Spent, t.Lang, list, wording.Cost(cost, currency))
}

var callLevels = [][2]string{
	{"充足", "plenty"}, {"卡片不再流式更新", "no streaming"}, {"仅用 webhook", "webhook only"}, {"已用完，仅用 webhook", "used up, webhook only"},
}

func callsLine(b CallBudget, lang string) string {
	number := wording.Thousands(int(b.Calls))
	if b.Quota > 0 {
		number += " / " + wording.Thousands(int(b.Quota)) + wording.Say(wording.CallsLeft, lang, wording.Thousands(int(max(0, b.Quota-b.Calls))))
	}
	if lang == "en" {
		return number + " (" + callLevels[b.Level][1] + ")"
	}
	return number + "（" + callLevels[b.Level][0] + "）"
}

func (r statusCommand) known(ctx context.Context) string {
	_, total, err := r.rights.Known(ctx, askerOf(r.t, r.isAdmin), 0, 1)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to count memory")
		return "?"
	}
	return wording.Thousands(total)
}

func (r statusCommand) owed(ctx context.Context) string {
	d, err := r.flushes.Owed(ctx, r.t.Lease.Key)
	if err != nil {
		if !errors.Is(err, sessions.ErrNotFound) {
			zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to read the owed flush")
		}
		return ""
	}
	if r.t.Lang == "en" {
		return wording.Count(" (a flush is owed, failed %d time{|s}, tried again in the background)", d.Failures)
	}
	return fmt.Sprintf("（欠一次整理，已失败 %d 次，后台会再试）", d.Failures)
}

// since is in brackets; empty before the first compaction.
func since(s sessions.Session, loc *time.Location) string {
	at := s.CompactedAt
	if at.IsZero() {
		return ""
	}
	return " (" + at.In(loc).Format("01-02 15:04") + ")"
}

// unflushed does not count commands.
func unflushed(v sessions.View) int {
	n := int(max(0, v.Session.CompactedSeq-v.Session.FlushedSeq))
	for _, e := range v.Tail {
		if e.Seq > v.Session.FlushedSeq {
			n++
		}
	}
	return n
}
