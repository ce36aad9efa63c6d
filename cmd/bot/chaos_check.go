package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"ebb/bot/dingtalk/dingtalktest"
	"ebb/sessions"
	"ebb/sql"
)

// findings are what the checker saw.
type findings struct {
	broken []string // promises that were not kept, in words

	said, acked, answered, apologies, dead, doubled int
	turns, compactions, flushes, facts              int
	p50, p99                                        time.Duration
}

func (f *findings) broke(format string, args ...any) {
	if len(f.broken) < maxBroken {
		f.broken = append(f.broken, fmt.Sprintf(format, args...))
	}
}

// check holds what is stored and what was sent against what was said. All gateways have ended.
func (w *chaos) check(ctx context.Context) (*findings, error) {
	f := &findings{broken: w.broken, said: len(w.talk.said), acked: len(w.talk.acked)}
	log, err := w.eye.Log(ctx)
	if err != nil {
		return nil, err
	}
	standing, err := w.eye.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	facts, err := w.eye.Facts(ctx)
	if err != nil {
		return nil, err
	}
	gaps, err := w.eye.Gaps(ctx)
	if err != nil {
		return nil, err
	}
	for _, gap := range gaps {
		f.broke("summaries do not tile the log: %s", gap)
	}
	open, err := w.eye.Undone(ctx)
	if err != nil {
		return nil, err
	}
	if open.GivenUp > 0 {
		f.broke("%d replies were given up", open.GivenUp)
	}
	turns := turnsOf(log)
	w.checkInbox(f, log)
	w.checkAnswers(f, turns)
	w.checkFacts(f, log, standing, facts)
	w.checkTurnLines(f)
	w.checkOverlaps(f)
	w.checkProtocol(f)
	for _, s := range standing {
		f.compactions, f.flushes = f.compactions+s.Compactions, f.flushes+s.Flushes
	}
	took := slices.Clone(w.talk.took)
	f.p50, f.p99 = quantile(took, 0.5), quantile(took, 0.99)
	return f, nil
}

// checkInbox: what was acknowledged is in the log, each once, and before whatever was said after that. Of two messages that
// were on their way at the same time either may be first.
func (w *chaos) checkInbox(f *findings, log []sql.Logged) {
	stored := map[sessions.MessageID]int{}
	latest := map[sessions.Key]time.Time{} // when the latest was said of those taken so far
	for _, e := range log {
		if e.Role != sessions.RoleUser {
			continue
		}
		if stored[e.MsgID]++; stored[e.MsgID] == 2 {
			f.broke("message %s is in the log twice", e.MsgID)
		}
		if e.State == sessions.Dead {
			f.dead++
		}
		if e.Seq == 0 {
			continue
		}
		mark := string(e.MsgID)
		if acked := w.talk.acked[mark]; !acked.IsZero() && acked.Before(latest[e.Key]) {
			f.broke("message %s of session %s was acknowledged before another one was said, and taken after it", mark, e.Key)
		}
		if said := w.talk.first[mark]; said.After(latest[e.Key]) {
			latest[e.Key] = said
		}
	}
	for id := range w.talk.acked {
		if stored[sessions.MessageID(id)] == 0 {
			f.broke("message %s was acknowledged and is not in the log", id)
		}
	}
}

// loggedTurn is one turn as the log has it: the messages that it took and what it answered.
type loggedTurn struct {
	key   sessions.Key
	asked []sql.Logged
	text  string
}

// turnsOf takes the log apart into turns: questions, and the answer behind them.
func turnsOf(log []sql.Logged) []loggedTurn {
	var turns []loggedTurn
	answered := true
	for _, e := range log {
		switch {
		case e.Seq == 0:
		case e.Role == sessions.RoleUser:
			if answered || turns[len(turns)-1].key != e.Key {
				turns = append(turns, loggedTurn{key: e.Key})
			}
			t := &turns[len(turns)-1]
			t.asked, answered = append(t.asked, e), false
		case len(turns) > 0:
			turns[len(turns)-1].text += e.Content
			answered = true
		}
	}
	return turns
}

// checkAnswers: each message was answered in one turn, and DingTalk has that answer, in the order of the turns.
func (w *chaos) checkAnswers(f *findings, turns []loggedTurn) {
	posted, first, order := map[string]int{}, map[string]int{}, map[string]int{}
	texts := map[string]*strings.Builder{}
	for i, r := range w.sim.Replies("") {
		seen := map[string]bool{}
		for _, mark := range marks.FindAllString(r.Text, -1) {
			if seen[mark] {
				f.broke("a reply to %s has the answer to %s twice", r.Conversation, mark)
				continue
			}
			seen[mark] = true
			if posted[mark]++; posted[mark] == 1 {
				first[mark] = i
			}
		}
		if texts[r.Conversation] == nil {
			texts[r.Conversation] = &strings.Builder{}
		}
		texts[r.Conversation].WriteString(r.Text)
	}
	for mark, n := range posted {
		if n > 1 {
			f.doubled++
		}
		if w.talk.place[mark] == "" {
			f.broke("an answer to %s was sent, which nobody said", mark)
		}
	}
	if f.doubled > w.book.doubled {
		f.broke("%d answers were sent twice, and only %d were counted as perhaps doubled", f.doubled, w.book.doubled)
	}
	told := map[string]int{}
	for _, t := range turns {
		f.turns++
		has := marks.FindAllString(t.text, -1)
		for _, mark := range has {
			if told[mark]++; told[mark] == 2 {
				f.broke("message %s was answered in two turns", mark)
			}
		}
		place := w.talk.place[string(t.asked[0].MsgID)]
		for _, e := range t.asked {
			mark := string(e.MsgID)
			switch at, sent := first[mark]; {
			case len(has) == 0 && texts[place] != nil && strings.Contains(texts[place].String(), opening(t.text)):
				f.apologies++ // the model failed again and again, and people were told
			case !slices.Contains(has, mark):
				f.broke("message %s is in a turn that does not answer it: %q", mark, opening(t.text))
			case !sent:
				f.broke("the answer to message %s was stored and never sent", mark)
			case at < order[place]:
				f.broke("the answer to message %s was sent before an earlier one of %s", mark, place)
			default:
				f.answered++
				order[place] = at
			}
		}
	}
	if n := f.answered + f.apologies + f.dead; n < f.acked {
		f.broke("%d messages were acknowledged and %d have an answer", f.acked, n)
	}
}

// opening is the beginning of an answer, short enough to stand in a reply as it is.
func opening(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	rs := []rune(line)
	return string(rs[:min(len(rs), 20)])
}

// checkFacts: what lies before a session's flush cursor is in memory, once.
func (w *chaos) checkFacts(f *findings, log []sql.Logged, standing []sql.Standing, facts []sql.Kept) {
	kept := map[string]int{}
	for _, k := range facts {
		for _, m := range toRemember.FindAllStringSubmatch(k.Content, -1) {
			kept[m[1]]++
		}
	}
	cursor := map[sessions.Key]int64{}
	for _, s := range standing {
		cursor[s.Key] = s.FlushedSeq
	}
	for _, e := range log {
		fact := w.talk.fact[string(e.MsgID)]
		if e.Role != sessions.RoleUser || fact == "" || e.Seq == 0 || e.Seq > cursor[e.Key] {
			continue
		}
		f.facts++
		if n := kept[toRemember.FindStringSubmatch(fact)[1]]; n != 1 {
			f.broke("the fact of message %s was flushed and is in memory %d times", e.MsgID, n)
		}
	}
}

// checkTurnLines: no session had two turns at a time, and no term of a lease goes backwards. A process that stood still
// may write a line late.
func (w *chaos) checkTurnLines(f *findings) {
	stood := func(t turnLine) bool {
		name, _, _ := strings.Cut(t.process, "-")
		return slices.ContainsFunc(w.slots, func(s *slot) bool { return s.name == name && s.stood(t.from, t.to) })
	}
	by := map[string][]turnLine{}
	for _, t := range w.book.turns {
		by[t.session] = append(by[t.session], t)
	}
	for _, session := range slices.Sorted(maps.Keys(by)) {
		turns := by[session]
		slices.SortStableFunc(turns, func(x, y turnLine) int { return cmp.Or(x.from.Compare(y.from), x.to.Compare(y.to)) })
		for i := 1; i < len(turns); i++ {
			last, t := turns[i-1], turns[i]
			if stood(last) || stood(t) {
				continue
			}
			if t.term < last.term {
				f.broke("session %s: a turn of term %d began after one of term %d", session, t.term, last.term)
			}
			if t.from.Add(clockGrain).Before(last.to) {
				f.broke("session %s: the turn of %s (%s) began %s before that of %s (%s) had ended", session, t.msgID, t.process,
					last.to.Sub(t.from), last.msgID, last.process)
			}
		}
	}
	for _, p := range w.book.panics {
		f.broke("a panic: %s", p)
	}
}

// checkOverlaps: no two replicas that live ask the model for an answer in one conversation at the same time.
func (w *chaos) checkOverlaps(f *findings) {
	for _, o := range w.mind.both {
		excused := slices.ContainsFunc(w.apart, func(s span) bool { return s.holds(o.second.from) }) ||
			slices.ContainsFunc(w.slots, func(s *slot) bool {
				return s.stood(o.first.from.Add(-apartFor), o.second.from) || s.killed(o.first.process, o.second.from)
			})
		if !excused {
			f.broke("%s has two turns at a time: %s asked %s after %s, whose answer was not ready", o.conversation, o.second.process,
				o.second.from.Sub(o.first.from), o.first.process)
		}
	}
}

// clockGrain is how much later than its commit the line of a turn may be written on a machine that is busy.
const clockGrain = 250 * time.Millisecond

// checkProtocol: what the simulator would never hear from a gateway that behaves, whatever became of it.
func (w *chaos) checkProtocol(f *findings) {
	for _, v := range w.sim.Violations(
		dingtalktest.AckUnknown, dingtalktest.AckTwice, dingtalktest.AckMalformed, dingtalktest.AckWrongConnection,
		dingtalktest.ReplyWrongPlace, dingtalktest.MentionNotInText, dingtalktest.WebhookUnknown, dingtalktest.OpenMalformed,
	) {
		f.broke("protocol: %s", v)
	}
}

// report prints what was done and what was found.
func (w *chaos) report(out io.Writer, f *findings) {
	fmt.Fprintf(out, "\ntroubles:")
	for _, kind := range slices.Sorted(maps.Keys(w.done)) {
		fmt.Fprintf(out, "  %s %d", kind, w.done[kind])
	}
	fmt.Fprintf(out, "\nlogged by gateways:\n")
	for _, m := range slices.Sorted(maps.Keys(w.book.counts)) {
		fmt.Fprintf(out, "%8d  %s\n", w.book.counts[m], m)
	}
	fmt.Fprintf(out, `
said %d, acknowledged %d, answered %d, told that the model failed %d, set aside %d
turns %d, compactions %d, flushes %d, facts flushed %d
perhaps doubled %d, doubled %d
from the first push to the answer: p50 %s, p99 %s
`, f.said, f.acked, f.answered, f.apologies, f.dead, f.turns, f.compactions, f.flushes, f.facts, w.book.doubled, f.doubled, millis(f.p50), millis(f.p99))
	if len(f.broken) == 0 {
		fmt.Fprintf(out, "seed %d: 0 violations\n", w.opt.Seed)
		return
	}
	for _, b := range f.broken {
		fmt.Fprintf(out, "VIOLATION: %s\n", b)
	}
	fmt.Fprintf(out, "seed %d: %d violations; the same plan again: bot chaos --seed %d --for %s\n", w.opt.Seed, len(f.broken), w.opt.Seed, w.opt.For)
}
