package bot_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ebb/bot/bottest"
	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/memory"
	"ebb/sessions"
)

// snapshot is what the last check saw.
type snapshot struct {
	sessions.Session
	log     int  // rows of the compaction log
	commits int  // committed ones and undos among them
	failing bool // the summariser gives no summary, since at least that check
	sent    int  // replies
	request asked
}

// broken ends the run. The words are the same in every run that breaks the same law, so that rapid can shrink; the
// particulars go to the log.
func (m *machine) broken(law string, detail ...any) {
	if len(detail) > 0 {
		m.rt.Log(detail...)
	}
	m.failed.Store(true)
	for _, line := range m.w.Log.Tail(12) {
		m.rt.Log(line)
	}
	m.rt.Fatal(law)
}

// check holds every law against the rows, requests and messages since the last check.
func (m *machine) check() {
	m.mu.Lock()
	faults, requests := m.faults, m.asked
	m.faults, m.asked = nil, nil
	m.mu.Unlock()
	for _, f := range faults {
		law, detail, _ := strings.Cut(f, ": ")
		m.broken(law, detail)
	}
	if _, err := m.shelf.Mem.Sessions.Session(m.t.Context(), bottest.Group); err != nil {
		return // no message yet
	}
	v := m.view()
	m.checkCoverage(v)
	m.checkLog(v)
	m.checkProgress(v)
	m.checkStanding(v)
	for _, a := range requests {
		m.checkRequest(v, a)
	}
	m.checkNotices()
	m.checkFlushes(v)
}

// view is the storage's view of the session, for any owner.
func (m *machine) view() sessions.View {
	s, err := m.w.Store.Session(m.t.Context(), bottest.Group)
	if err != nil {
		m.broken("the session can't be read", err)
	}
	v := sessions.View{Session: s}
	for _, sum := range m.shelf.Mem.Summaries(m.t.Context(), bottest.Group) {
		if sum.Status == sessions.Active {
			v.Summaries = append(v.Summaries, sum)
		}
	}
	slices.SortFunc(v.Summaries, func(a, b sessions.Summary) int { return int(a.StartSeq - b.StartSeq) })
	for _, e := range m.shelf.EventsOf(m.t.Context(), bottest.Group) {
		if e.Seq > s.CompactedSeq {
			v.Tail = append(v.Tail, e)
		}
	}
	return v
}

// checkCoverage holds that every event of the generation is in one summary or raw.
func (m *machine) checkCoverage(v sessions.View) {
	next := v.Session.BaseSeq + 1
	for _, s := range v.Summaries {
		// P1, P2: the active summaries lie end to end, and count their events.
		if s.StartSeq != next || int64(s.MsgCount) != s.EndSeq-s.StartSeq+1 {
			m.broken("P2: summaries do not tile", v.Summaries, v.Session.BaseSeq)
		}
		next = s.EndSeq + 1
	}
	if next != v.Session.CompactedSeq+1 {
		m.broken("P1: the cursor is not where the summaries end", next, v.Session.CompactedSeq)
	}
	for _, e := range v.Tail {
		if e.Seq != next {
			m.broken("P1: an event is neither summarized nor raw", e.Seq, next)
		}
		next++
	}
	if next != v.Session.LastSeq+1 {
		m.broken("P1: the end of the log is missing", next, v.Session.LastSeq)
	}
	// P4: no call is summarized without its result, and none that waits.
	if open := m.parted(v); open != "" {
		m.broken("P4: a call is parted from its result", open)
	}
}

// parted finds a raw result without its raw call, or the other way round.
func (m *machine) parted(v sessions.View) string {
	open := map[string]bool{}
	for _, e := range v.Tail {
		for _, c := range e.ToolCalls {
			open[c.ID] = true
		}
		if e.Role == sessions.RoleTool {
			if !open[e.ToolCallID] {
				return fmt.Sprint("result at ", e.Seq)
			}
			delete(open, e.ToolCallID)
		}
	}
	if len(open) > 0 {
		return fmt.Sprint("calls ", open)
	}
	return ""
}

// checkLog holds that the log only grows, and never changes. With sawOpen, which compares the input of summaries with
// it, it is P12: raw events and the sources of summaries are the log, byte for byte.
func (m *machine) checkLog(v sessions.View) {
	for _, e := range m.shelf.EventsOf(m.t.Context(), bottest.Group) {
		body := fmt.Sprint(e.Role, " ", e.MsgID, " ", e.ToolCallID, " ", e.Content)
		if was, ok := m.bodies[e.Seq]; ok && was != body {
			m.broken("P12: an event has changed", e.Seq, was, body)
		}
		m.bodies[e.Seq] = body
		// P14: what people said stands there once, and as they said it.
		if e.Role == sessions.RoleUser && e.Content != m.posted[e.MsgID] {
			m.broken("P14: a message is not what was said", e.Content, m.posted[e.MsgID])
		}
	}
	if len(m.bodies) != int(v.Session.LastSeq) {
		m.broken("P12: the log has holes", len(m.bodies), v.Session.LastSeq)
	}
	seen := map[sessions.MessageID]bool{}
	for _, e := range m.shelf.Mem.Events(m.t.Context(), bottest.Group) {
		if e.Role == sessions.RoleUser && seen[e.MsgID] {
			m.broken("P14: a message stands there twice", e.MsgID)
		}
		seen[e.MsgID] = true
	}
}

// checkProgress holds that the cursor moves when it may, and that failures move nothing.
func (m *machine) checkProgress(v sessions.View) {
	rows, err := m.shelf.Mem.Compactions.Compactions(m.t.Context(), bottest.Group, 1<<20)
	if err != nil {
		m.broken("the compaction log can't be read", err)
	}
	now := snapshot{Session: v.Session, log: len(rows), request: m.before.request, sent: m.before.sent}
	undone := false
	for i, r := range rows { // newest first
		if r.Outcome == sessions.CompactionCommitted {
			now.commits++
			undone = undone || i < len(rows)-m.before.log && r.Trigger == "undo"
		}
	}
	was := m.before
	same := was.Gen == v.Session.Gen && was.Key != ""
	// P3: the cursor moves forward, unless people take a compaction back.
	if same && !undone && v.Session.CompactedSeq < was.CompactedSeq {
		m.broken("P3: the cursor went back", was.CompactedSeq, v.Session.CompactedSeq)
	}
	// P3, P4: and with a row of the log that says so, in the same write.
	if same && now.commits == was.commits && (v.Session.CompactedSeq != was.CompactedSeq || v.Session.CompactionCount != was.CompactionCount) {
		m.broken("P3: the cursor moved without a compaction", was.CompactedSeq, v.Session.CompactedSeq)
	}
	m.mu.Lock()
	mode, doubtful := m.summary, m.doubtful
	m.doubtful = false
	m.mu.Unlock()
	// P55: a summariser that gives no summary moves nothing.
	if same && was.failing && !undone && m.set.Policy.Mode != compaction.PruneOnly && v.Session.CompactedSeq != was.CompactedSeq {
		m.broken("P55: a failed summary moved the cursor", mode, rows[0])
	}
	job, err := m.shelf.Mem.Jobs.Job(m.t.Context(), bottest.Group)
	staged := err == nil && job.Staged
	now.failing = mode != "good" && mode != "slow" && !staged && !doubtful && !m.w.Bot.Worker().Busy(bottest.Group)
	now.failing = now.failing || was.failing && mode != "good" && mode != "slow" && !doubtful
	// P37: with a provider that reports no count, the count of a context never falls unless the context was made
	// smaller.
	if same && !m.reports && now.commits == was.commits && v.Session.TotalTokens < was.TotalTokens {
		m.broken("P37: the estimate fell", was.TotalTokens, v.Session.TotalTokens)
	}
	m.before = now
}

// checkStanding holds bounds of summaries, and that a view has one form.
func (m *machine) checkStanding(v sessions.View) {
	p := m.set.Policy
	for _, s := range v.Summaries {
		// P31: whatever a model wrote, a summary takes no more than a quarter of a request.
		if s.Tokens > m.set.Window.Usable()/4+tokens.MessageOverhead {
			m.broken("P31: a summary is too long", s.Tokens)
		}
	}
	// P83: the same view gives the same bytes.
	one, two := m.w.Views.Frames.Common.Assemble(v, p, "", nil), m.w.Views.Frames.Common.Assemble(v, p, "", nil)
	if bottest.Transcript(one) != bottest.Transcript(two) {
		m.broken("P83: one view has two forms")
	}
}

// checkNotices holds that the group reads answers and results of commands, and nothing else.
func (m *machine) checkNotices() {
	var sent []string
	for _, w := range m.wires {
		sent = append(sent, w.Texts()...)
	}
	for _, text := range sent[m.before.sent:] {
		switch {
		// P91: nothing that upkeep asked a model for.
		case strings.HasPrefix(text, "re: "), strings.HasPrefix(text, "⏰ "):
		case text == wording.Say(wording.Overflow, "en"), text == wording.Say(wording.Overflow, "zh"):
			// P23: a provider that counts otherwise than we do costs one more request, not an answer.
			m.broken("P23: a message is too long for the window")
		case slices.ContainsFunc(commandReplies, func(p string) bool { return strings.HasPrefix(text, p) }):
			m.checkFull(text)
		default:
			m.broken("P91: the group receives a text of upkeep", text)
		}
	}
	m.before.sent = len(sent)
}

// commandReplies are the beginnings of the replies to the machine's commands. A receipt has a warning sign where the
// summary lost most identifiers.
var commandReplies = append([]string{"✅ 压缩完成：", "⚠️ 压缩完成："}, beginnings(
	wording.NoGain, wording.NothingToCompact, wording.StillFull, wording.GainedTooLittle, wording.CompactFailed, wording.Undone, wording.NothingToUndo, wording.UndoFailed,
	wording.Renewed, wording.RenewedOwed, wording.NotRenewed,
)...)

// beginnings are the Chinese texts of phrases up to their first value.
func beginnings(of ...wording.Phrase) (texts []string) {
	for _, p := range of {
		fixed, _, _ := strings.Cut(wording.Say(p, "zh"), "%")
		texts = append(texts, fixed)
	}
	return texts
}

var fullRE = regexp.MustCompile(`上下文仍为 [\d,]+ / [\d,]+ tokens（(\d+)%）`)

// checkFull holds that a reply names the size of the context only where it is at its threshold or above.
func (m *machine) checkFull(text string) {
	if size := fullRE.FindStringSubmatch(text); size != nil {
		if percent, _ := strconv.Atoi(size[1]); percent < 100 {
			m.broken("P91: a context below its threshold is called full", text)
		}
	}
}

// checkFlushes holds that flushes read all of the log once.
func (m *machine) checkFlushes(v sessions.View) {
	f := m.shelf.Flushes(bottest.Group)
	at := int64(0)
	// P88: flushed ranges lie end to end, whatever failed in between.
	for _, r := range f.Ranges {
		if r[0] != at {
			m.broken("P88: flushed ranges do not lie end to end", f.Ranges)
		}
		at = r[1]
	}
	if f.Failures == 0 && f.Seq > v.Session.LastSeq {
		m.broken("P88: the flush cursor is past the log")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	// P86: a cycle is marked as flushed once.
	for cycle, n := range m.flushed {
		if n > 1 {
			m.rt.Log(cycle)
			m.rt.Fatal("P86: a cycle was flushed twice")
		}
	}
}

// sawOpen compares the input of a compaction with the log (P12), and notes its end (P11).
func (m *machine) sawOpen(j sessions.Job, src sessions.Source) {
	log := m.shelf.EventsOf(m.t.Context(), bottest.Group)
	var bodies []sessions.Event
	for _, e := range log {
		if e.Seq > j.From && e.Seq <= j.Through {
			bodies = append(bodies, e)
		}
	}
	if len(bodies) != len(src.Events) {
		m.fault("P12: a compaction is not given its range")
		return
	}
	for i, e := range src.Events {
		if e.Seq != bodies[i].Seq || e.Content != bodies[i].Content {
			m.fault("P12: a compaction is not given what was said: event %d", e.Seq)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.staged = src.Staged != nil
	m.opened[j.Through] = log[len(log)-1].Seq
}

// sawCompact holds the laws of a compaction that has just committed.
func (m *machine) sawCompact(ctx context.Context, before sessions.Session, c sessions.Compaction) {
	m.change()
	p := m.set.Policy
	var tail []sessions.Event
	total := 0
	for _, e := range m.w.Views.Words.WithoutCommands(m.shelf.EventsOf(ctx, bottest.Group)) {
		if e.Seq > c.Through {
			tail = append(tail, e)
		}
		if e.Seq > before.BaseSeq {
			total++
		}
	}
	if len(c.Summaries) > 0 {
		// P11: what came while it ran is raw.
		m.mu.Lock()
		last, known := m.opened[c.Through]
		m.mu.Unlock()
		if !known || c.Through > last {
			m.fault("P11: a compaction tells what came after it was planned")
		}
		// P5: as much stays raw as the policy wants. A share of the window is no number of events.
		if p.TailShare == 0 && len(tail) < min(p.TailMessages, total) || len(compaction.TurnStarts(tail)) < max(1, p.TailTurns) {
			m.fault("P5: a compaction leaves too little raw: %d events", len(tail))
		}
	}
	m.mu.Lock()
	staged := m.staged
	m.staged = false
	m.mu.Unlock()
	if !staged { // a staged summary passed the gate before a crash, with the context of then
		m.checkGain(before, c)
	}
	m.checkRolled(c)
}

// checkGain holds P28: a compaction that committed made the context smaller. Policies that go by counts have a gate of
// their own; what memory the view shows from now on is not the compaction's to answer for.
func (m *machine) checkGain(before sessions.Session, c sessions.Compaction) {
	shown := 0
	if c.Pinned != nil {
		shown = tokensOf(c.Pinned.Text) - tokensOf(before.Pinned)
	}
	freed := c.Log.TokensBefore - c.Log.TokensAfter + view.Calibrated(shown, max(1, before.CalibrationFactor))
	least := 512
	for _, one := range c.Summaries { // at most 0.8 of its source
		if one.EndSeq == c.Through {
			least = max(least, view.Calibrated(one.Tokens/4, before.CalibrationFactor))
		}
	}
	p := m.set.Policy
	counts := p.Window > 0 || p.MaxMessages > 0 || p.Segment > 0
	if (!counts || len(c.Summaries) == 0) && freed+tokens.MessageOverhead < least && c.Log.TokensAfter > 0 {
		m.fault("P28: a compaction gained too little: %d of %d, want %d", freed, c.Log.TokensBefore, least)
	}
}

// checkRolled holds P31 of segments: where they are too many or too long, the older ones became one, unless the model
// gave no roll-up.
func (m *machine) checkRolled(c sessions.Compaction) {
	p := m.set.Policy
	if len(c.Summaries) == 0 || p.Rolling || strings.Contains(c.Log.Audit, "roll_up_failed") {
		return
	}
	active, tokens := 0, 0
	for _, s := range m.shelf.Mem.Summaries(m.t.Context(), bottest.Group) {
		if s.Status == sessions.Active {
			active, tokens = active+1, tokens+s.Tokens
		}
	}
	switch {
	case p.Mode == compaction.PruneOnly && active > 8:
		m.fault("P31: too many notes: %d", active)
	case p.Mode == compaction.PruneOnly || p.RollUpSegments == 0 || active <= 2:
	case active > p.RollUpSegments || tokens > p.RollUpTokens:
		m.fault("P31: segments are not rolled up: %d of %d tokens", active, tokens)
	}
}

// sawFlush counts the flushes that mark a cycle (P86).
func (m *machine) sawFlush(before sessions.Session, f memory.Flush) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f.Epoch != before.FlushEpoch {
		m.flushed[[2]int{before.Gen, f.Epoch}]++
	}
}
