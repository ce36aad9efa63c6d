package chaos

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"ebb/bot/dingtalk/dingtalktest"
	"ebb/bot/outbox"
	"ebb/bot/wording"
	"ebb/cmd/lab/rig"
	"ebb/sessions"
)

// checkAll compares stored and sent messages with those of people, and the gateways with each other.
func (e *evidence) checkAll() *findings {
	f := &findings{broken: e.broken, said: len(e.said) - e.scheduled, perhaps: len(e.again), p50: rig.Quantile(e.took, 0.5), p99: rig.Quantile(e.took, 0.99)}
	for _, check := range []func(*evidence, *findings){
		(*evidence).checkInbox, (*evidence).checkOrder, (*evidence).checkTurns, (*evidence).checkReplies, (*evidence).checkLetters,
		(*evidence).checkSetAside, (*evidence).checkFacts, (*evidence).checkTurnLines, (*evidence).checkTerms, (*evidence).checkOverlaps,
		(*evidence).checkAccounts, (*evidence).checkRest, (*evidence).checkCards, (*evidence).checkErased, (*evidence).checkKept, (*evidence).checkMonths, (*evidence).checkReminders,
		(*evidence).checkAttached, (*evidence).checkTools, (*evidence).checkApprovals,
	} {
		check(e, f)
	}
	f.recoveries = e.recoveries()
	for _, s := range e.standing {
		f.compactions, f.flushes = f.compactions+s.Compactions, f.flushes+s.Flushes
	}
	return f
}

// checkInbox: each acknowledged message is once in the log of its session.
func (e *evidence) checkInbox(f *findings) {
	stored := map[string]int{}
	keyOf, threadOf := map[string]sessions.Key{}, map[sessions.Key]string{}
	for _, l := range e.log {
		if l.Role != sessions.RoleUser {
			continue
		}
		mark := string(l.MsgID)
		if mark == "" && isWiped(l.Content) {
			continue // the person was forgotten
		}
		if stored[mark]++; stored[mark] == 2 {
			f.addBroken("message %s is in the log twice", mark)
		}
		if l.State == sessions.Dead && !isWiped(l.Content) {
			f.dead++
		}
		u, known := e.said[mark]
		if !known {
			f.addBroken("message %s is in the log, and no member sent it", mark)
			continue
		}
		if keyOf[u.thread] == "" && threadOf[l.Key] == "" {
			keyOf[u.thread], threadOf[l.Key] = l.Key, u.thread
		}
		if keyOf[u.thread] != l.Key || threadOf[l.Key] != u.thread {
			f.addBroken("message %s, said in %s, is in session %s", mark, u.thread, l.Key)
		}
	}
	for _, mark := range slices.Sorted(maps.Keys(e.said)) {
		if e.said[mark].acked.IsZero() {
			continue
		}
		f.acked++
		if stored[mark] == 0 && !e.said[mark].gone {
			f.addBroken("message %s was acknowledged and is not in the log", mark)
		}
	}
}

// checkOrder: an acknowledged message precedes every message sent after its acknowledgement. Concurrent messages may
// come in either order. An order to stop passes what waits, and so do the messages that it ends: those of other askers wait on.
func (e *evidence) checkOrder(f *findings) {
	latest := map[sessions.Key]remark{} // said last of those taken so far
	for _, t := range turnsOf(e.log) {
		for _, mark := range t.asked {
			u := e.said[mark]
			if u.harm {
				continue
			}
			if last := latest[t.key]; !u.acked.IsZero() && u.acked.Before(last.sent) {
				f.addBroken("message %s of session %s was acknowledged before %s was said, and taken after it", u.mark, t.key, last.mark)
			}
			if u.sent.After(latest[t.key].sent) && !wasStopped(t.text) {
				latest[t.key] = u
			}
		}
	}
}

// wasStopped reports whether a command or a button ended the turn of an answer.
func wasStopped(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasSuffix(text, wording.Say(wording.CutShort, "zh")) || strings.HasSuffix(text, wording.Say(wording.CutShort, "en"))
}

// checkTurns: one turn took each message, and its answer names no other message. An answer without a mark is a
// command's, or reports that the model failed.
func (e *evidence) checkTurns(f *findings) {
	for _, l := range e.log {
		if l.State == sessions.Pending {
			f.addBroken("message %s is in the log, and no turn took it", l.MsgID)
		}
	}
	for _, t := range turnsOf(e.log) {
		f.turns++
		has := rig.MarkPattern.FindAllString(t.text, -1)
		quotes := slices.ContainsFunc(t.asked, func(mark string) bool { return e.said[mark].harm })
		for _, mark := range has {
			if !quotes && !slices.Contains(t.asked, mark) && !e.said[mark].wiped {
				f.addBroken("message %s was answered in a turn that did not take it: session %s answered %v with %q", mark, t.key, t.asked, shorten(t.text))
			}
		}
		for _, mark := range t.asked {
			switch command, scheduled := e.said[mark].command, e.said[mark].scheduled; {
			case isWiped(t.text), mark == "", e.said[mark].wiped:
				f.wiped++
			case strings.TrimSpace(t.text) == "":
				f.addBroken("message %s was taken and not answered", mark)
			case scheduled && len(has) == 0:
			case command && (len(t.asked) > 1 || len(has) > 0):
				f.addBroken("the command %s was answered as if it were talk: %q", mark, shorten(t.text))
			case command:
				f.commands++
			case e.said[mark].attached.wordless && !slices.Contains(has, mark): // checkAttached judges it
			case len(has) == 0 && approvalNumber.MatchString(t.text):
				f.asked++
			case len(has) == 0:
				f.apologies++
			case !slices.Contains(has, mark):
				f.addBroken("message %s is in a turn that does not answer it: %q", mark, shorten(t.text))
			default:
				f.answered++
			}
		}
	}
}

// checkReplies: answers went to their conversations in the order of their session's turns, from their first words on a card on. Others
// may pass one that DingTalk refused several times.
func (e *evidence) checkReplies(f *findings) {
	first := map[string]int{}
	for i, r := range e.replies {
		seen := map[string]bool{}
		for _, mark := range rig.MarkPattern.FindAllString(r.Text, -1) {
			u, known := e.said[mark]
			switch {
			case seen[mark]:
				f.addBroken("a reply to %s has the answer to %s twice", r.Conversation, mark)
				continue
			case !known:
				f.addBroken("an answer to %s was sent, a message that no member sent", mark)
			case u.place != r.Conversation:
				f.addBroken("the answer to %s, said in %s, was sent to %s", mark, u.place, r.Conversation)
			}
			seen[mark] = true
			if _, before := first[mark]; !before {
				first[mark] = i
			}
		}
	}
	passed := map[string]bool{}
	for _, l := range e.letters {
		if l.Refusals >= outbox.MaxBlocking {
			for _, mark := range rig.MarkPattern.FindAllString(l.Text, -1) {
				passed[mark] = true
			}
		}
	}
	latest := map[sessions.Key]int{}
	for _, t := range turnsOf(e.log) {
		for _, mark := range rig.MarkPattern.FindAllString(t.text, -1) {
			at, sent := first[mark]
			last, later := latest[t.key]
			switch {
			case !sent || !later || !slices.Contains(t.asked, mark):
			case at < last:
				f.addBroken("the answer to message %s was sent before an earlier one of session %s: %s, then %s", mark, t.key,
					describeReply(e.replies[at]), describeReply(e.replies[last]))
			case at > last && e.wordsOf(mark, e.replies[at]).Before(e.replies[last].Time):
				f.addBroken("the answer to message %s showed words before an earlier one of session %s was sent: %s, then %s", mark, t.key,
					e.said[mark].wordedAt.Format("15:04:05.000"), describeReply(e.replies[last]))
			}
			if !passed[mark] {
				latest[t.key] = max(latest[t.key], at)
			}
		}
	}
}

// wordsOf is the time of an answer's first words. Those of an attempt that was broken off do not count: the turn of the next one may
// be another.
func (e *evidence) wordsOf(mark string, r dingtalktest.Reply) time.Time {
	attempts := 0
	for _, q := range e.asked {
		if slices.Contains(q.marks, mark) {
			attempts++
		}
	}
	if worded := e.said[mark].wordedAt; r.Via == "card" && attempts == 1 && !worded.IsZero() {
		return worded
	}
	return r.Time
}

// checkLetters: each turn and each dead letter left a reply, and each reply sent by the gateways' count has arrived.
// Repeated arrivals need a log line. Apologies and answers to commands name no message and are found by their text.
func (e *evidence) checkLetters(f *findings) {
	type letter struct{ where, text string }
	left, sent := map[letter]int{}, map[letter]int{} // by session, by conversation
	blank := map[sessions.Key]int{}                  // replies that were erased
	counted := map[letter]bool{}                     // as perhaps doubled, by conversation
	spare := map[sessions.Key]int{}
	for _, l := range e.letters {
		text := strings.TrimSpace(l.Text)
		spare[l.Key]++
		if isWiped(text) {
			blank[l.Key]++ // any turn: an erasure takes all replies that may repeat its words
			continue
		}
		left[letter{string(l.Key), withoutNote(text)}]++
		if l.Sent && text != "" {
			sent[letter{string(l.Conversation), text}]++
		}
		if !e.again[letterID{l.Key, l.ID}].IsZero() {
			counted[letter{string(l.Conversation), text}] = true
		}
	}
	for _, t := range turnsOf(e.log) {
		k := letter{string(t.key), withoutNote(t.text)}
		spare[t.key]--
		if isWiped(t.text) || t.text == "" && !slices.ContainsFunc(t.asked, func(mark string) bool { return !e.said[mark].harm }) {
			continue // erased, or over a limit whose notice is bounded too
		}
		if left[k]--; left[k] < 0 && blank[t.key] > 0 {
			blank[t.key]--
		} else if left[k] < 0 {
			f.addBroken("the answer of session %s to %v left no reply: %q", t.key, t.asked, shorten(t.text))
		}
	}
	dead := e.setAside()
	for _, key := range slices.Sorted(maps.Keys(dead)) {
		if spare[key] < len(dead[key]) {
			f.addBroken("session %s set %d messages aside and notified %d people", key, len(dead[key]), spare[key])
		}
	}
	texts := map[string]string{}
	for where, all := range e.textsByPlace() {
		texts[where] = all.String()
	}
	for l, n := range sent {
		arrived := strings.Count(texts[l.where], l.text)
		if arrived < n {
			f.addBroken("%d replies to %s were marked as sent and %d arrived: %q", n, l.where, arrived, shorten(l.text))
		}
		if arrived > n && rig.MarkPattern.MatchString(l.text) { // other texts may stand within longer ones
			f.doubled += arrived - n
			if !counted[l] {
				f.addBroken("a reply to %s arrived %d times in place of %d, and no gateway said that it may: %q", l.where, arrived, n, shorten(l.text))
			}
		}
	}
}

// setAside lists dead letters by session. An erasure turns waiting messages into such, without a reply.
func (e *evidence) setAside() map[sessions.Key]map[sessions.MessageID]bool {
	dead := map[sessions.Key]map[sessions.MessageID]bool{}
	for _, l := range e.log {
		if l.State != sessions.Dead || isWiped(l.Content) {
			continue
		}
		if dead[l.Key] == nil {
			dead[l.Key] = map[sessions.MessageID]bool{}
		}
		dead[l.Key][l.MsgID] = true
	}
	return dead
}

// checkSetAside: every dead letter had as many faults as it has attempts. Each process that asked the model for its
// answer met a fault during the turn. A clean stop is no fault: it gives turns back.
func (e *evidence) checkSetAside(f *findings) {
	for _, l := range e.log {
		if l.State != sessions.Dead || isWiped(l.Content) {
			continue
		}
		mark := string(l.MsgID)
		life := rig.Interval{From: e.said[mark].pushed, To: endOfTime}
		troubles := countOverlaps(e.away, life) + countOverlaps(e.rough, life)
		for _, process := range e.lives {
			troubles += process.countFaults(life)
		}
		if troubles < maxTries {
			f.addBroken("message %s was set aside after %d troubles, want %d at least", mark, troubles, maxTries)
		}
		for _, q := range e.asked {
			turn := rig.Interval{From: q.at, To: q.at.Add(chaosTurn + apartFor)}
			if slices.Contains(q.marks, mark) && countOverlaps(e.away, turn)+countOverlaps(e.rough, turn)+e.lives[q.process].countFaults(turn) == 0 {
				f.addBroken("message %s was set aside, and %s, which asked for its answer, was in no trouble", mark, q.process)
			}
		}
	}
}

// maxTries is the number of attempts before a dead letter.
const maxTries = 3

// countFaults counts faults of the process in a time that break a turn.
func (l life) countFaults(in rig.Interval) int {
	n := countOverlaps(l.apart, in)
	if in.Contains(l.killed) {
		n++
	}
	if l.twice && in.Contains(l.stopRequested) {
		n++
	}
	return n
}

func (e *evidence) textsByPlace() map[string]*strings.Builder {
	texts := map[string]*strings.Builder{}
	for _, r := range e.replies {
		if texts[r.Conversation] == nil {
			texts[r.Conversation] = &strings.Builder{}
		}
		texts[r.Conversation].WriteString(r.Text + "\n")
	}
	return texts
}

// checkTurnLines: no session had two turns at a time. A process that stood still, or could not reach the database, may
// write a line late.
func (e *evidence) checkTurnLines(f *findings) {
	by := map[string][]turnLine{}
	for _, t := range e.turns {
		if !e.lives[t.process].wasApart(t.from, t.to) {
			by[t.session] = append(by[t.session], t)
		}
	}
	for _, session := range slices.Sorted(maps.Keys(by)) {
		turns := by[session]
		slices.SortStableFunc(turns, func(x, y turnLine) int { return cmp.Or(x.from.Compare(y.from), x.to.Compare(y.to)) })
		for i := 1; i < len(turns); i++ {
			last, t := turns[i-1], turns[i]
			if t.from.Add(clockGrain).Before(last.to) {
				f.addBroken("session %s: the turn of %s (%s) began %s before that of %s (%s) had ended", session, t.msgID, t.process,
					last.to.Sub(t.from), last.msgID, last.process)
			}
		}
	}
	for _, p := range e.panics {
		f.addBroken("a panic: %s", p)
	}
}

// clockGrain is the delay of a turn's log line behind its commit on a busy machine.
const clockGrain = 250 * time.Millisecond

// checkTerms: one term of a session's lease belongs to one process. Turns are in the log in the order of their terms,
// and the stored term is never behind that of a committed turn.
func (e *evidence) checkTerms(f *findings) {
	type grant struct {
		session string
		term    int64
	}
	owner, highest, of := map[grant]string{}, map[string]int64{}, map[string]int64{}
	for _, t := range e.turns {
		of[t.msgID] = t.term
		g := grant{t.session, t.term}
		if owner[g] == "" {
			owner[g] = t.process
		}
		if owner[g] != t.process {
			f.addBroken("session %s: %s and %s both committed under term %d", t.session, owner[g], t.process, t.term)
		}
		highest[t.session] = max(highest[t.session], t.term)
	}
	f.grants = len(owner)
	latest := map[sessions.Key]int64{}
	for _, t := range turnsOf(e.log) {
		term, logged := of[t.asked[0]]
		if logged && term < latest[t.key] {
			f.addBroken("session %s: the turn of %s was committed under term %d, after one of term %d", t.key, t.asked[0], term, latest[t.key])
		}
		latest[t.key] = max(latest[t.key], term)
	}
	stored := map[string]int64{}
	for _, l := range e.terms {
		stored[string(l.Key)] = l.Term
	}
	for _, session := range slices.Sorted(maps.Keys(highest)) {
		if stored[session] < highest[session] {
			f.addBroken("session %s: a turn was committed under term %d, and the stored one is %d", session, highest[session], stored[session])
		}
	}
}

// checkOverlaps: no two replicas ask the model for an answer in one session at the same time. A replica that was cut
// off or stopped during its question does not know of another owner, and stores nothing.
func (e *evidence) checkOverlaps(f *findings) {
	for _, o := range e.both {
		first, second := e.lives[o.first.process], e.lives[o.second.process]
		excused := slices.ContainsFunc(e.away, func(s rig.Interval) bool { return s.Contains(o.second.from) }) ||
			e.erasedBetween(o.conversationID(), o.first.since, o.second.from) || first.wasApart(o.first.since, o.second.from) || second.wasApart(o.second.since, o.second.from) || first.goneBy(o.second.from)
		if !excused {
			f.addBroken("%s has two turns at a time: %s asked %s after %s, whose answer was not ready", o.thread, o.second.process,
				o.second.from.Sub(o.first.from), o.first.process)
		}
	}
}

// goneBy reports whether the process had ended, or had drained its turns as long as a stop does.
func (l life) goneBy(at time.Time) bool {
	ended := !l.killed.IsZero() && l.killed.Before(at) || !l.ended.IsZero() && l.ended.Before(at)
	return ended || !l.stopRequested.IsZero() && (l.twice || l.stopRequested.Add(chaosDrain).Before(at))
}

// checkAccounts: every process has its account, none is open at the end, and none lost anything.
func (e *evidence) checkAccounts(f *findings) {
	has := map[string]bool{}
	for _, a := range e.accounts {
		name := processOf(a.Replica)
		has[name] = true
		f.accounts++
		f.resumed, f.redelivered = f.resumed+int(a.Figures.Resumed), f.redelivered+int(a.Figures.Redelivered)
		l := e.lives[name]
		switch {
		case a.Figures.Lost != 0:
			f.addBroken("process %s has lost %d messages, by its own account", name, a.Figures.Lost)
		case a.Ending == sessions.Running:
			f.addBroken("the account of %s is open, which has ended", name)
		case a.Ending == sessions.Clean && l.stopRequested.IsZero():
			f.addBroken("the account of %s says that it stopped cleanly, and it was not asked to", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.online)) {
		// A process that met an outage of the database opens its account at its next attempt.
		if l := e.lives[name]; !has[name] && l.endTime().Sub(e.online[name]) > accountWithin {
			f.addBroken("process %s served for %s and has no account", name, l.endTime().Sub(e.online[name]).Round(time.Second))
		}
	}
}

const accountWithin = 15 * time.Second

func (l life) endTime() time.Time {
	if !l.killed.IsZero() {
		return l.killed
	}
	return l.ended
}

// checkRest: no reply is unsent or given up, and no client broke the protocol.
func (e *evidence) checkRest(f *findings) {
	if n := e.open.Replies; n > 0 {
		f.addBroken("%d replies are still to be sent", n)
	}
	if n := e.open.GivenUp; n > 0 {
		f.addBroken("%d replies were given up", n)
	}
	for _, v := range e.strange {
		if !strings.HasPrefix(v.Kind, "card-") {
			f.addBroken("protocol: %s", v)
		}
	}
}
