package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/manage"
	"ebb/bot/reload"
	"ebb/bot/upkeep"
	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/compaction"
	"ebb/sessions"
)

// compactCommand is /compact.
type compactCommand struct {
	manage   *manage.Manager
	roles    roles
	views    *view.Builder
	current  *reload.Current
	location *time.Location
	refresh  refresher
	wake     func(sessions.Key) // the upkeep of a session
	stats    Stats
	log      interface {
		Compactions(ctx context.Context, key sessions.Key, limit int) ([]sessions.LogEntry, error)
	}
}

func compactOf(e *env) compactCommand {
	return compactCommand{
		manage: e.manage, roles: e.roles(), views: e.views, current: e.shared.Current, location: e.shared.Location, refresh: refresher{e.stores.Turns, e.views, e.shared.Leases}, wake: e.upkeep.Wake,
		stats: e.stats, log: e.stores.Compactions,
	}
}

// begin compacts nothing for a text that is nearly the word of another use.
func (c compactCommand) begin(ctx context.Context, t *view.CommandTurn, call Call) string {
	if meant := call.Command.Near(call.Arg); meant != "" {
		return wording.Say(wording.DidYouMean, t.Lang, meant, call.Arg)
	}
	return c.now(ctx, t, call)
}

// now says for each end what it means for the asker: a context that is still full needs another answer than one that was
// small. The view of the turn is read again, since its answer shows the new sizes.
func (c compactCommand) now(ctx context.Context, t *view.CommandTurn, call Call) string {
	settings, focus, why := c.overrides(ctx, t, call)
	if why != "" {
		return why
	}
	done, err := c.manage.Compact(ctx, c.roles.actor(t), t.View.Session, focus, settings)
	trigger := c.views.Choices.Settings(t.View.Session).Window.Trigger()
	full, size := done.TokensBefore >= trigger, []any{wording.Thousands(done.TokensBefore), wording.Thousands(trigger), done.TokensBefore * 100 / trigger}
	switch {
	case upkeep.NothingToCompact(err) && full:
		return wording.Say(wording.StillFull, t.Lang, append([]any{nothingWord(err, t.Lang)}, size...)...)
	case upkeep.NothingToCompact(err):
		return wording.Say(wording.NothingToCompact, t.Lang, nothingWord(err, t.Lang))
	case err != nil && done.Outcome == sessions.CompactionRejected && full:
		return wording.Say(wording.GainedTooLittle, t.Lang, size...)
	case err != nil && done.Outcome == sessions.CompactionRejected:
		return wording.Say(wording.NoGain, t.Lang)
	case err != nil:
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Manual compaction failed")
		return wording.Say(wording.CompactFailed, t.Lang, upkeep.CompactReason(err, t.Lang))
	}
	c.refresh.reload(ctx, t)
	c.wake(t.Lease.Key) // the background continues with a backlog
	left := ""
	if tokens, parts := backlogOf(c.views, t.View); parts > 0 {
		left = wording.Say(wording.BacklogLeft, t.Lang, wording.Thousands(tokens), parts, backlogWord(c.views.Choices.Settings(t.View.Session), t.View.Session, t.Lang))
	}
	return compactReceipt(done, t.Lang) + left
}

// overrides parses leading KEY=VALUE words behind /compact. why is the answer for an invalid one.
func (c compactCommand) overrides(ctx context.Context, t *view.CommandTurn, call Call) (settings, focus, why string) {
	var resolve manage.Resolve
	if c.current.For(t.Lease.Key).Own != nil {
		resolve = c.views.Choices.Resolve
	}
	settings, focus, key, err := manage.Overrides(t.View.Session, call.Arg, resolve)
	if err != nil {
		return "", "", notSet(ctx, key, err, t.Lang, wording.Say(wording.Usage, t.Lang, "`"+call.Use.Usage.In(t.Lang)+"`"))
	}
	return settings, focus, ""
}

// backlogOf returns the tokens that a compaction may still remove, and roughly the attempts; 0 if one attempt is enough.
func backlogOf(views *view.Builder, v sessions.View) (tokens, parts int) {
	set, size := views.Choices.Settings(v.Session), views.Sizes.ContextSize(v)
	tokens, parts = set.Policy.Backlog(set.Window.Counted(v.Session.CalibrationFactor), views.Sizes.State(v, size))
	if size < set.Window.Trigger() && (set.Policy.Segment == 0 || parts < 2) {
		return 0, 0
	}
	return view.Calibrated(tokens, v.Session.CalibrationFactor), parts
}

func backlogWord(set compaction.Settings, s sessions.Session, lang string) string {
	switch {
	case !set.Enabled:
		return wording.Say(wording.ByHandOnly, lang)
	case view.Spent(set, s):
		return wording.Say(wording.NextDay, lang)
	}
	return wording.Say(wording.OnTheWay, lang)
}

const shownFacts = 5

// poorRecall is the share of kept identifiers below which a receipt warns.
const poorRecall = 0.5

// shownFact and shownFocus are in characters.
const shownFact, shownFocus = 80, 60

// compactReceipt reports a compaction to the members of a group. Policy, model and time are in the compaction log.
func compactReceipt(c upkeep.Compacted, lang string) string {
	var out strings.Builder
	line := func(chinese, english string, args ...any) {
		out.WriteString(wording.Count(wording.Text{chinese, english}.In(lang), args...))
	}
	mark, poor := "✅", c.Report.Calls > 0 && c.Report.Recall < poorRecall
	if poor {
		mark = "⚠️"
	}
	if n := c.Summarized; n > 0 {
		line("%s 压缩完成：较早的 %d 条消息概括成了摘要，", "%s Compacted: %d older message{|s} {is|are} a summary now, ", mark, n)
	} else {
		line("%s 压缩完成：没有新概括的消息，", "%s Compacted: no further message was summarized, ", mark)
	}
	line("最近 %d 条保留原文。原话都还在，需要时可以查到。\n", "and the latest %d stay{s|} word for word. The originals are kept and can be looked up.\n", c.Preserved)
	before, after := wording.Thousands(c.TokensBefore), wording.Thousands(c.TokensAfter)
	line("\n- 对话占用：%s → %s tokens，少了 %s", "\n- size: %s → %s token{|s}, %s less", before, after, wording.Thousands(max(0, c.TokensBefore-c.TokensAfter)))
	if c.PinnedGrowth > 0 {
		line("（现在的 %s 里新记住的事占 %s）", " (of these %s, new memories take %s)", after, wording.Thousands(c.PinnedGrowth))
	}
	if c.Focus != "" {
		line("\n- 重点：%s", "\n- focus: %s", headOf(c.Focus, shownFocus))
	}
	out.WriteString(savedLines(c, lang))
	if poor {
		line("\n- 模型写的摘要只保留了 %.0f%% 的编号、日期和名称，请核对", "\n- the model's summary kept %.0f%% of the numbers, dates and names only, please check it", 100*c.Report.Recall)
	}
	if n := c.Report.Added; n > 0 {
		line("\n- 摘要漏掉的 %d 个编号、日期或名称已补上", "\n- %d number{|s}, date{|s} or name{|s} that the summary had left out {was|were} added", n)
	}
	if c.Report.Fallback != "" {
		line("\n- %s 没有成功，摘要由 %s 写成", "\n- %s failed; %s wrote the summary", c.RequestedModel, c.Model)
	}
	if c.BlobsDeleted > 0 {
		line("\n- 删除了 %d 份不再需要的工具结果", "\n- %d tool result{|s} that nothing needs any more {was|were} deleted", c.BlobsDeleted)
	}
	line("\n\n`/压缩撤销` 可以撤销，`/压缩记录` 有详情。", "\n\n`/compact undo` takes it back, `/compact log` has the details.")
	return out.String()
}

// savedLines lists the new facts of the flush of a compaction, or says why there are none.
func savedLines(c upkeep.Compacted, lang string) string {
	facts, known := c.Memory.New, ""
	if n := len(c.Memory.Duplicate); n > 0 {
		known = fmt.Sprintf(wording.Text{"（另有 %d 件早已记得）", " (and %d known before)"}.In(lang), n)
	}
	if len(facts) == 0 {
		return wording.Text{"\n- 记忆：", "\n- memory: "}.In(lang) + unsavedWords(c.FlushOutcome, lang) + known
	}
	var out strings.Builder
	fmt.Fprintf(&out, wording.Text{"\n- 新记住 %d 件事%s：", "\n- new in memory: %d%s"}.In(lang), len(facts), known)
	for i, f := range facts {
		if i == shownFacts {
			fmt.Fprintf(&out, wording.Text{"\n  - 另有 %d 条", "\n  - and %d more"}.In(lang), len(facts)-shownFacts)
			break
		}
		fmt.Fprintf(&out, "\n  - %s", headOf(f.Content, shownFact))
	}
	return out.String()
}

// unsavedWords say why a flush saved no fact.
func unsavedWords(outcome sessions.FlushOutcome, lang string) string {
	head, passed, isPassed := strings.Cut(string(outcome), ", passed over ")
	words := wording.Text{"没有存下新的内容", "nothing new was saved"}
	switch sessions.FlushOutcome(head) {
	case "", upkeep.FlushedOff:
		words = wording.Text{"这次没有另外存入", "nothing was saved besides the summary"}
	case upkeep.FlushedBefore:
		words = wording.Text{"重要的事之前已经记下", "what matters was saved before"}
	case upkeep.FlushedOwed:
		words = wording.Text{"重要的事还没能记下，稍后会再试", "what matters is not saved yet; this is tried again later"}
	case upkeep.FlushedLater:
		words = wording.Text{"重要的事稍后一起整理", "what matters is saved later, together with more"}
	case "nothing to save":
		words = wording.Text{"没有要存的", "nothing to save"}
	}
	if isPassed {
		return words.In(lang) + fmt.Sprintf(wording.Text{"，有 %s 条没有读到", "; messages that were not read: %s"}.In(lang), passed)
	}
	return words.In(lang)
}

func flushWord(outcome sessions.FlushOutcome, lang string) string {
	outcome = cmp.Or(outcome, upkeep.FlushedOff)
	if lang == "en" {
		return string(outcome)
	}
	return strings.NewReplacer(", ", "，", "passed over", "跳过", "saved", "存下", "known", "已有", "nothing to save", "没有要存的", "done before", "这一轮已整理",
		"owed", "未完成，稍后补上", "later", "稍后一起整理", "off", "关闭").Replace(string(outcome))
}

func nothingWord(err error, lang string) string {
	words := [2]string{"都是最近的消息", "all messages are recent"}
	switch {
	case errors.Is(err, compaction.ErrSystemDominates):
		words = [2]string{
			"系统提示、工具和置顶记忆占满了窗口，需要管理员缩短提示词或调高阈值",
			"the system prompt, the tools and pinned memory fill the window; an administrator has to shorten the prompt or raise the thresholds",
		}
	case errors.Is(err, compaction.ErrTooLittle):
		words = [2]string{"较早的消息太短，不值得做摘要", "the older messages are too short to be worth a summary"}
	case errors.Is(err, compaction.ErrBlockedHead):
		words = [2]string{"最早的消息还在等工具的结果", "the oldest messages still wait for the result of a tool"}
	}
	if lang == "en" {
		return words[1]
	}
	return words[0]
}

func (c compactCommand) undo(ctx context.Context, t *view.CommandTurn, _ Call) string {
	e, err := c.manage.Undo(ctx, c.roles.actor(t), t.View.Session)
	switch {
	case errors.Is(err, sessions.ErrNotFound):
		return wording.Say(wording.NothingToUndo, t.Lang)
	case errors.Is(err, sessions.ErrUndoExpired):
		return wording.Say(wording.UndoExpired, t.Lang)
	case err != nil:
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to undo the compaction")
		return wording.Say(wording.UndoFailed, t.Lang)
	}
	c.stats.Compacted(e)
	c.refresh.reload(ctx, t)
	// The row of a repeated request has the sizes of its time, so the view's are stated.
	size, rest := c.views.Sizes.ContextSize(t.View), ""
	if grown := c.views.Choices.Settings(t.View.Session).RestsUntil(t.View.Session, size); grown > 0 {
		rest = wording.Say(wording.UndoneRests, t.Lang, wording.Thousands(grown))
	}
	return wording.Say(wording.Undone, t.Lang, e.StartSeq, e.EndSeq, wording.Thousands(size)) + rest
}

const shownLog = 5

// list has one line for each attempt, failed ones too: a group asks for it when something went wrong.
func (c compactCommand) list(ctx context.Context, t *view.CommandTurn, _ Call) string {
	rows, err := c.log.Compactions(ctx, t.Lease.Key, shownLog)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to read the compaction log")
		return wording.Say(wording.LogUnreadable, t.Lang)
	}
	if len(rows) == 0 {
		return wording.Say(wording.LogEmpty, t.Lang)
	}
	var out strings.Builder
	for _, e := range rows {
		fmt.Fprintf(&out, "- #%d %s %s/%s %s", e.ID, e.CreatedAt.In(c.location).Format("01-02 15:04"), e.Policy, e.Trigger, outcomeWord(e, t.Lang))
		if e.Outcome == sessions.CompactionCommitted {
			out.WriteString(wording.Count(" %s → %s token{|s}", wording.Thousands(e.TokensBefore), wording.Thousands(e.TokensAfter)))
		}
		if e.EndSeq >= e.StartSeq {
			fmt.Fprintf(&out, " (%d–%d)", e.StartSeq, e.EndSeq)
		}
		out.WriteString(spentWord(e, c.current.Get().Currency, t.Lang) + "\n")
	}
	return out.String()
}

func spentWord(e sessions.LogEntry, currency, lang string) string {
	var parts []string
	if tokens := e.Usage.Prompt + e.Usage.Completion; tokens > 0 {
		part := wording.Count("%s %s token{|s}", e.Model, wording.Thousands(tokens))
		if e.Cost > 0 {
			part += wording.Say(wording.CostOf, lang, wording.Cost(e.Cost, currency))
		}
		parts = append(parts, part)
	}
	if e.FlushOutcome != "" && e.FlushOutcome != upkeep.FlushedOff {
		parts = append(parts, wording.Say(wording.Flushed, lang, flushWord(e.FlushOutcome, lang)))
	}
	if len(parts) == 0 {
		return ""
	}
	if lang == "en" {
		return "; " + strings.Join(parts, "; ")
	}
	return "；" + strings.Join(parts, "；")
}

var outcomeWords = map[sessions.CompactionOutcome]wording.Text{
	sessions.CompactionCommitted: {"完成", "done"},
	sessions.CompactionRejected:  {"收益太小", "gained too little"},
	sessions.CompactionFailed:    {"没有成功，稍后再试", "failed, to be tried again"},
	sessions.CompactionNothing:   {"无需压缩", "nothing to do"},
}

// outcomeWord names the outcome by its cause as well: an undo and a rewrite are committed attempts, and not compactions to people.
func outcomeWord(e sessions.LogEntry, lang string) string {
	words, known := outcomeWords[e.Outcome]
	switch {
	case !known:
		return string(e.Outcome)
	case e.Outcome == sessions.CompactionCommitted && e.Trigger == upkeep.TriggerUndo:
		words = wording.Text{"撤销", "took one back"}
	case e.Outcome == sessions.CompactionCommitted && e.Trigger == upkeep.TriggerRewrite:
		words = wording.Text{"重写一份摘要", "rewrote one summary"}
	}
	word := words.In(lang)
	if why := upkeep.ParseReason(e.Error); e.Outcome == sessions.CompactionFailed && e.Error != "" {
		word += wording.Say(wording.Because, lang, why.Describe(lang))
	}
	switch {
	case e.Undone.IsZero():
		return word
	case lang == "en":
		return word + ", undone"
	}
	return word + "，已撤销"
}

// newCommand is /new.
type newCommand struct {
	manage  *manage.Manager
	roles   roles
	refresh refresher
}

func newOf(e *env) newCommand {
	return newCommand{e.manage, e.roles(), refresher{e.stores.Turns, e.views, e.shared.Leases}}
}

func (n newCommand) begin(ctx context.Context, t *view.CommandTurn, _ Call) string {
	owed, err := n.manage.NewContext(ctx, n.roles.actor(t), t.View.Session)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to start a new conversation")
		return wording.Say(wording.NotRenewed, t.Lang)
	}
	n.refresh.reload(ctx, t)
	if owed {
		return wording.Say(wording.RenewedOwed, t.Lang)
	}
	return wording.Say(wording.Renewed, t.Lang)
}
