package sessionstest

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"ebb/sessions"
)

// A and B choose among the possible operations.
type historyStep struct {
	Do   int
	A, B int
}

const (
	doSay = iota
	doTools
	doSegment
	doRolling
	doRollUp
	doOffload
	doPrune
	doUndo
	doRenew
	doRefused
	doErase
	doEnd
)

var histories = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) historyStep {
	return historyStep{rapid.IntRange(0, doEnd-1).Draw(t, "do"), rapid.IntRange(0, 9).Draw(t, "a"), rapid.IntRange(0, 9).Draw(t, "b")}
}), 1, 40)

// P1, P2, P3, P12, P13, P15, P75, P77, P78: after every step of any history, each event of the generation stands in
// one summary or in the tail. Every needed body can be read in its original words, and no other is kept.
func testHistories(b *suite) {
	b.sendBeat(replicaA)
	if b.Histories == 0 {
		n := 0
		rapid.Check(b.T, func(t *rapid.T) {
			n++
			b.playSteps(t, n, histories.Draw(t, "history"))
		})
		return
	}
	for n := range b.Histories {
		b.playSteps(b.T, n, histories.Example(n))
	}
}

type history struct {
	*suite
	t      failingTest
	key    sessions.Key
	lease  sessions.Lease
	said   []sessions.Event // by place
	before []string         // views to go back to, the newest last, without later messages
	marks  []int            // len(said) of each
	texts  map[int64]string // all summaries seen
	last   sessions.Session // before the step
	erased bool             // the view that an undo restores is unknown
}

type failingTest interface {
	Helper()
	Fatalf(format string, args ...any)
}

func (b *suite) playSteps(t failingTest, n int, steps []historyStep) {
	key := sessions.NewKey("robot", sessions.ConversationID(fmt.Sprintf("cid-%d", n)), "")
	h := &history{suite: b, t: t, key: key, texts: map[int64]string{}}
	h.applyStep(historyStep{Do: doSay})
	for _, s := range steps {
		h.applyStep(s)
	}
}

func (h *history) mustSucceed(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatalf("%v", err)
	}
}

func (h *history) readView() sessions.View {
	h.t.Helper()
	v, err := h.Store.Turns.Begin(h.ctx, h.lease, 0)
	h.mustSucceed(err)
	return v
}

// checkView ignores events behind place n.
func (h *history) checkView(v sessions.View, n int) string {
	v.Tail = slices.DeleteFunc(slices.Clone(v.Tail), func(e sessions.Event) bool { return e.Seq > int64(n) })
	return checkShown(v)
}

func (h *history) applyStep(s historyStep) {
	h.t.Helper()
	if len(h.said) == 0 {
		h.addMessage(s, false)
		h.checkInvariants(s)
		return
	}
	v := h.readView()
	h.last = v.Session
	raw := int(v.Session.LastSeq - v.Session.CompactedSeq)
	c := sessions.Compaction{Gen: v.Session.Gen, From: v.Session.CompactedSeq, Through: v.Session.CompactedSeq}
	switch s.Do {
	case doSay, doTools:
		h.addMessage(s, s.Do == doTools)
	case doSegment, doRolling:
		if raw == 0 {
			return
		}
		c.Through += int64(1 + s.A%raw)
		start := c.From + 1
		if s.Do == doRolling {
			start = v.Session.BaseSeq + 1
		}
		c.Summaries = []sessions.NewSummary{{StartSeq: start, EndSeq: c.Through, Text: h.nextSummary(start, c.Through, s.B), Tokens: 40}}
		c.Shown = h.shortenView(v.Tail, c.Through, s, s.B%2 == 0)
		h.compactSome(v, c)
	case doRollUp:
		if len(v.Summaries) == 0 {
			return
		}
		i := s.A % len(v.Summaries)
		j := i + s.B%(len(v.Summaries)-i)
		c.Summaries = []sessions.NewSummary{{StartSeq: v.Summaries[i].StartSeq, EndSeq: v.Summaries[j].EndSeq, Tokens: 50, Level: 1}}
		c.Summaries[0].Text = h.nextSummary(c.Summaries[0].StartSeq, c.Summaries[0].EndSeq, s.B)
		h.compactSome(v, c)
	case doOffload, doPrune:
		c.Shown = h.shortenView(v.Tail, c.Through, s, s.Do == doOffload)
		h.compactSome(v, c)
	case doUndo:
		h.undoSome(v)
	case doRenew:
		h.mustSucceed(h.Store.Sessions.Renew(h.ctx, h.lease))
		h.before, h.marks, h.erased = nil, nil, false
	case doRefused:
		h.checkRefused(v, c, s)
	case doErase:
		h.eraseSome(int64(1 + (s.A+10*s.B)%len(h.said)))
	}
	h.checkInvariants(s)
}

func (h *history) addMessage(s historyStep, tool bool) {
	h.t.Helper()
	m := newMessage(len(h.said))
	m.Text = []string{"你好", "{\"a\":1}", "x\r\n\ty", "😀 [Content unavailable]", " "}[s.A%5] + wordOf(len(h.said)+1)
	a, err := h.Store.Inbox.Accept(h.ctx, replicaA, h.key, m)
	h.mustSucceed(err)
	h.lease = a.Lease
	v, err := h.Store.Turns.Begin(h.ctx, h.lease, 1)
	h.mustSucceed(err)
	t := newAnswer(v)
	t.Reply = nil
	if tool {
		body := []string{bigBody, otherBody, bigBody + "!"}[s.B%3] // few, so that the same body comes again
		t.Events = append([]sessions.Event{
			{Role: sessions.RoleAssistant, ToolCalls: []sessions.ToolCall{{ID: "c", Name: "query", Arguments: "{}"}}, Tokens: 3},
			{Role: sessions.RoleTool, ToolCallID: "c", ToolName: "query", Content: body, Tokens: 200},
		}, t.Events...)
	}
	done, err := h.Store.Turns.Commit(h.ctx, h.lease, t)
	h.mustSucceed(err)
	h.said = append(h.said, sessions.Event{Role: sessions.RoleUser, Content: m.Text, Tokens: 10})
	for _, e := range t.Events {
		h.said = append(h.said, sessions.Event{Role: e.Role, Content: e.Content, Tokens: e.Tokens})
	}
	if int(done.LastSeq) != len(h.said) {
		h.t.Fatalf("the log is at %d after %d events", done.LastSeq, len(h.said))
	}
}

func (h *history) shortenView(tail []sessions.Event, after int64, s historyStep, offload bool) []sessions.Shown {
	var shown []sessions.Shown
	for _, e := range tail {
		if e.Seq <= after || int(e.Seq)%3 != s.B%3 {
			continue
		}
		whole := h.said[e.Seq-1]
		whole.Seq = e.Seq
		if offload {
			shown = append(shown, blobReference(whole))
		} else {
			shown = append(shown, sessions.Shown{Seq: e.Seq, Text: fmt.Sprintf("[cut %d]", s.A), Tokens: 1})
		}
	}
	return shown
}

// wordOf is in no other message.
func wordOf(seq int) string {
	word := []byte(" word")
	for ; seq > 0; seq /= 26 {
		word = append(word, byte('a'+seq%26))
	}
	return string(word) + "q "
}

// nextSummary has a line for each message's word.
func (h *history) nextSummary(first, last int64, n int) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d to %d, %d", first, last, n)
	for seq := first; seq <= last; seq++ {
		if e := h.said[seq-1]; e.Role == sessions.RoleUser && e.Content != sessions.ErasedText {
			text.WriteString("\n- 有人说了" + wordOf(int(seq)))
		}
	}
	return text.String()
}

// No summary repeats the event then; other lines and all summaries stay.
func (h *history) eraseSome(seq int64) {
	h.t.Helper()
	before, size := map[int64]sessions.Summary{}, h.readView().Session.TotalTokens
	for _, sum := range h.Summaries(h.T, h.key) {
		before[sum.ID] = sum
	}
	done, err := h.Store.Erasure.Erase(h.ctx, h.key, []int64{seq})
	h.mustSucceed(err)
	h.lease, err = h.Store.Leases.Acquire(h.ctx, h.key, replicaA)
	h.mustSucceed(err)
	h.said[seq-1].Content, h.said[seq-1].Tokens = sessions.ErasedText, sessions.ErasedTokens
	h.before, h.marks, h.erased = nil, nil, true
	changed := 0
	for _, sum := range h.Summaries(h.T, h.key) {
		old := before[sum.ID]
		if sum.Status != old.Status || sum.Tokens > max(old.Tokens, sessions.ErasedTokens) || strings.Contains(sum.Text, wordOf(int(seq))) {
			h.t.Fatalf("event %d was erased, and of summary\n%+v\nis left\n%+v", seq, old, sum)
		}
		if sum.Text != old.Text && sum.Status == sessions.Active {
			changed++
		}
		lost, lines := 0, 0
		for i := range h.said {
			if word := wordOf(i + 1); strings.Contains(old.Text, word) {
				lines++
				if !strings.Contains(sum.Text, word) {
					lost++
				}
			}
		}
		if lost > 1 && (lines > 1 || sum.Text != sessions.ErasedText) {
			h.t.Fatalf("erasing event %d took %d lines of\n%s\nleft is\n%s", seq, lost, old.Text, sum.Text)
		}
		h.texts[sum.ID] = fmt.Sprintf("%d-%d:%s", sum.StartSeq, sum.EndSeq, sum.Text)
	}
	if done.Summaries+done.Healed != changed {
		h.t.Fatalf("erasing event %d gave %+v, and changed %d summaries of the view", seq, done, changed)
	}
	if now := h.readView().Session.TotalTokens; now > size+sessions.ErasedTokens*(changed+1) {
		h.t.Fatalf("erasing event %d made a context of %d tokens one of %d", seq, size, now)
	}
}

func (h *history) compactSome(v sessions.View, c sessions.Compaction) {
	h.t.Helper()
	h.before, h.marks = append(h.before, h.checkView(v, len(h.said))), append(h.marks, len(h.said))
	src, err := h.Store.Jobs.OpenJob(h.ctx, h.lease, sessions.Job{Gen: c.Gen, From: c.From, Through: c.Through})
	h.mustSucceed(err)
	for _, e := range src.Events {
		if e.Content != h.said[e.Seq-1].Content || e.Blob != "" {
			h.t.Fatalf("event %d is summarized as %q, want %q", e.Seq, e.Content, h.said[e.Seq-1].Content)
		}
	}
	c.Source, c.Pinned = src.Hash, &sessions.Pinned{Text: fmt.Sprintf("pinned %d", len(h.before)%3)}
	_, err = h.Store.Compactions.Compact(h.ctx, h.lease, c)
	h.mustSucceed(err)
}

func (h *history) undoSome(v sessions.View) {
	h.t.Helper()
	_, err := h.Store.Compactions.Undo(h.ctx, h.lease, 0, 0)
	if len(h.before) == 0 {
		if err == nil && !h.erased {
			h.t.Fatalf("an undo took back what there is not, from\n%s", checkShown(v))
		}
		return
	}
	h.mustSucceed(err)
	n := len(h.before) - 1
	if got := h.checkView(h.readView(), h.marks[n]); got != h.before[n] {
		h.t.Fatalf("after an undo the view is\n%s\nwant\n%s", got, h.before[n])
	}
	h.before, h.marks = h.before[:n], h.marks[:n]
}

// checkRefused tries forbidden changes; the check after it finds their effects.
func (h *history) checkRefused(v sessions.View, c sessions.Compaction, s historyStep) {
	h.t.Helper()
	switch s.A % 4 {
	case 0:
		c.Gen++
	case 1:
		c.From, c.Through = c.From-1, c.Through-1
	case 2:
		c.Source = "another"
	case 3:
		c.Summaries = []sessions.NewSummary{{StartSeq: c.Through + 2, EndSeq: c.Through + 3, Text: "gap"}}
	}
	c.Shown = h.shortenView(v.Tail, c.Through, s, true)
	if _, err := h.Store.Compactions.Compact(h.ctx, h.lease, c); err == nil {
		h.t.Fatalf("a compaction that must not be was done: %+v", c)
	}
	if now := h.readView(); checkShown(now) != checkShown(v) {
		h.t.Fatalf("a refused compaction made of\n%s\nthe view\n%s", checkShown(v), checkShown(now))
	}
}

func (h *history) checkInvariants(s historyStep) {
	h.t.Helper()
	v := h.readView()
	st := v.Session
	if st.Gen == h.last.Gen && st.CompactedSeq < h.last.CompactedSeq && s.Do != doUndo {
		h.t.Fatalf("step %+v moved the cursor back from %d to %d", s, h.last.CompactedSeq, st.CompactedSeq)
	}
	end, count := st.BaseSeq, 0
	for _, sum := range v.Summaries {
		if sum.StartSeq != end+1 || sum.EndSeq < sum.StartSeq {
			h.t.Fatalf("after step %+v a summary covers %d to %d, after one up to %d", s, sum.StartSeq, sum.EndSeq, end)
		}
		end, count = sum.EndSeq, count+sum.MsgCount
	}
	if end != st.CompactedSeq || int64(count) != end-st.BaseSeq {
		h.t.Fatalf("after step %+v summaries cover %d events up to %d; the cursor is %d, after %d", s, count, end, st.CompactedSeq, st.BaseSeq)
	}
	needed := map[string]bool{}
	for i, e := range v.Tail {
		if e.Seq != end+int64(i)+1 {
			h.t.Fatalf("after step %+v the tail has event %d at %d after %d", s, e.Seq, i, end)
		}
		h.checkWhole(e, needed)
	}
	if int(end)+len(v.Tail) != len(h.said) {
		h.t.Fatalf("after step %+v the tail ends at %d, want %d", s, int(end)+len(v.Tail), len(h.said))
	}
	if got := h.Blobs(h.T, h.key); len(got) != len(needed) {
		h.t.Fatalf("after step %+v the bodies %v are kept, want %d", s, got, len(needed))
	}
	h.checkLogged(st)
	h.checkReadable(s)
}

// An event's view leads to its original words.
func (h *history) checkWhole(e sessions.Event, needed map[string]bool) {
	h.t.Helper()
	want := h.said[e.Seq-1]
	switch {
	case e.Blob != "":
		needed[e.Blob] = true
		body, err := h.Store.Compactions.Blob(h.ctx, h.key, e.Blob)
		if err != nil || body != want.Content {
			h.t.Fatalf("event %d, moved out of the view, reads %q (%v), want %q", e.Seq, body, err, want.Content)
		}
	case strings.HasPrefix(e.Content, "[cut "):
	case e.Content != want.Content || e.Role != want.Role || e.Tokens != want.Tokens:
		h.t.Fatalf("event %d is shown as %+v, want %+v", e.Seq, e, want)
	}
}

func (h *history) checkLogged(st sessions.Session) {
	h.t.Helper()
	n := 0
	for _, e := range h.Log(h.T, h.key) {
		if e.Seq == 0 {
			continue
		}
		n++
		if want := h.said[e.Seq-1]; e.Content != want.Content || e.Role != want.Role || e.Archived != (e.Seq <= st.CompactedSeq) {
			h.t.Fatalf("the log has event %d as %+v, want %+v, archived up to %d", e.Seq, e, want, st.CompactedSeq)
		}
	}
	if n != len(h.said) {
		h.t.Fatalf("the log has %d events of %d", n, len(h.said))
	}
}

// Summaries that were ever in a view stay readable.
func (h *history) checkReadable(s historyStep) {
	h.t.Helper()
	now := map[int64]string{}
	for _, sum := range h.Summaries(h.T, h.key) {
		now[sum.ID] = fmt.Sprintf("%d-%d:%s", sum.StartSeq, sum.EndSeq, sum.Text)
	}
	for id, text := range h.texts {
		if now[id] != text {
			h.t.Fatalf("after step %+v summary %d reads %q, want %q", s, id, now[id], text)
		}
	}
	h.texts = now
}

// A quote finds the answer on a card that one process created and another one ended, which does not know the key of its message.
func testQuoteAfterTakeover(b *suite) {
	l := b.leaseWithMessages(1)
	v := b.beginTurn(l, 1)
	card := sessions.Card{Kind: sessions.ReplyCard, Track: "taken over", EventID: v.Pending[0].ID}
	_, _, err := b.Store.Cards.OpenCard(b.ctx, l, card, 0)
	b.checkError(err)
	b.checkError(b.Store.Cards.BeginFrame(b.ctx, l, card.Track, "key of the first process"))
	b.checkError(b.Store.Cards.BeginFrame(b.ctx, l, card.Track, ""))
	b.checkError(b.Store.Cards.EndFrame(b.ctx, l, card.Track))
	turn := newAnswer(v)
	turn.Reply.Target.Card = card.Track
	done := b.commitTurn(l, turn)
	b.checkError(b.Store.Outbox.Settle(b.ctx, sessions.SendOutcome{Key: key, ID: done.Replies[0].ID, Sent: true, Via: "card", Card: sessions.CardFinished}))
	quoted, err := b.Store.Turns.Quoted(b.ctx, key, sessions.Quote{FromBot: true, Card: "key of the first process"})
	if b.checkError(err); quoted.Content != turn.Events[0].Content {
		b.Errorf("the quoted card is %+v, want the answer %q", quoted, turn.Events[0].Content)
	}
}
