package chaos

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"ebb/sessions"
)

// lateRequest is the time after an erasure in which models may get requests with words read before it: requests are
// retried, and a flush reads its range in parts.
const lateRequest = 20 * time.Second

// checkErased verifies that erased words are not sent, not requested and not stored after the receipt.
func (e *evidence) checkErased(f *findings) {
	for _, x := range e.erased {
		f.erasures++
		if x.receipt.IsZero() {
			f.addBroken("%s of %v, asked for at %s, has no receipt; the last reply was %q", x.kind, x.words, x.begun.Format(time.TimeOnly), x.heard)
			continue
		}
		for _, word := range x.words {
			if r, seen := e.sentAfter(x, word); seen {
				f.addBroken("%s: %s was erased and sent %s later to %s: %q", x.kind, word, r.after, r.place, r.text)
			}
			last, asked := e.requests[word]
			if late := last.at.Sub(x.receipt); asked && late > lateRequest && !e.lives[last.process].wasApart(x.begun, last.at) {
				f.addBroken("%s: %s was erased and %s asked a model with it %s later", x.kind, word, last.process, late.Round(time.Second))
			}
			if tables := e.remains[word]; len(tables) > 0 {
				f.addBroken("%s: %s was erased and is still in %s", x.kind, word, strings.Join(tables, ", "))
			}
		}
	}
}

type lateReply struct {
	after       time.Duration
	place, text string
}

// sentAfter finds a reply with a word that arrived with the receipt of its erasure, or later. The receipt may quote
// what it deleted; a process that just stood still may finish a begun request.
func (e *evidence) sentAfter(x erasure, word string) (lateReply, bool) {
	for _, r := range e.replies {
		leaks := func(part string) bool { return strings.Contains(part, word) && !strings.Contains(part, "已删除") }
		if r.Time.Before(x.receipt) || !slices.ContainsFunc(replyParts(r.Text), leaks) {
			continue
		}
		if !e.anyStood(r.Time.Add(-apartFor), r.Time) {
			return lateReply{r.Time.Sub(x.receipt), r.Conversation, shorten(r.Text)}, true
		}
	}
	return lateReply{}, false
}

func (e *evidence) anyStood(from, to time.Time) bool {
	for _, l := range e.lives {
		if l.wasApart(from, to) {
			return true
		}
	}
	return false
}

// checkKept verifies that all other messages are unchanged.
func (e *evidence) checkKept(f *findings) {
	for _, l := range e.log {
		u, known := e.said[string(l.MsgID)]
		if l.Role == sessions.RoleUser && known && !u.wiped && !u.command && !u.attached.wordless && !strings.Contains(l.Content, u.mark) {
			f.addBroken("message %s of session %s was not to be erased, and reads %q", u.mark, l.Key, shorten(l.Content))
		}
	}
}

// checkFacts: each fact before a session's flush cursor is in memory, once, and summaries are contiguous.
func (e *evidence) checkFacts(f *findings) {
	kept := map[string]int{}
	for _, k := range e.facts {
		for _, fact := range toRemember.FindAllString(k.Content, -1) {
			kept[fact]++
		}
	}
	cursor := map[sessions.Key]int64{}
	for _, s := range e.standing {
		cursor[s.Key] = s.FlushedSeq
	}
	for _, l := range e.log {
		fact := e.said[string(l.MsgID)].fact
		if l.Role != sessions.RoleUser || fact == "" || l.Seq == 0 || l.Seq > cursor[l.Key] {
			continue
		}
		f.facts++
		if n := kept[toRemember.FindString(fact)]; n != 1 && !e.said[string(l.MsgID)].wiped {
			f.addBroken("the fact of message %s was flushed and is in memory %d times", l.MsgID, n)
		}
	}
	for _, gap := range e.gaps {
		f.addBroken("summaries do not tile the log: %s", gap)
	}
}

// erasedBetween reports whether an erasure of a conversation was under way: it takes sessions from their owners.
func (e *evidence) erasedBetween(conversation string, from, to time.Time) bool {
	return slices.ContainsFunc(e.erased, func(x erasure) bool {
		end := x.receipt
		if end.IsZero() {
			end = endOfTime
		}
		return slices.Contains(x.touched, conversation) && x.begun.Before(to) && from.Before(end.Add(apartFor))
	})
}

// dropErased removes what no check can judge: deleted sessions begin again at their first term.
func (e *evidence) dropErased() {
	gone := map[string]bool{}
	for _, x := range e.erased {
		for _, thread := range x.gone {
			gone[thread] = true
		}
	}
	e.turns = slices.DeleteFunc(e.turns, func(t turnLine) bool { return gone[threadIn(sessions.Key(t.session))] })
}

// notes stand under the answer to a message that the model read in part, or without its pictures and files. The log has the answer alone.
var notes = regexp.MustCompile(`(\n\n（(这条消息很长：|[^（）\n]*(打不开：|没能取到：|没能及时取到))[^\n]*）)+$`)

// granted stands before the answer to an approval.
var granted = regexp.MustCompile(`^(✅ [^\n]*(同意了|approved) #\d+ [^\n]*\n+)+`)

func withoutNote(text string) string {
	return strings.TrimSpace(granted.ReplaceAllString(notes.ReplaceAllString(strings.TrimSpace(text), ""), ""))
}

func erasuresLine(all []erasure) string {
	n := map[string]int{}
	for _, x := range all {
		n[x.kind]++
	}
	return fmt.Sprintf("erasures: last messages %d, persons %d, facts %d", n["forget last"], n["forget me"], n["forget fact"])
}
