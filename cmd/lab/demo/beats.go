package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ebb/bot/openai/openaitest"
	"ebb/cmd/lab/rig"
	"ebb/memory"
	"ebb/sessions"
)

func (s *story) beginStory(ctx context.Context) (err error) {
	s.first, err = s.startGateway(ctx, "A")
	return err
}

// talkAboutFacts asks for a fact that still stands in the context.
func (s *story) talkAboutFacts(ctx context.Context) error {
	for _, f := range plantedFacts {
		if _, err := s.askAs(ctx, f.Utterance); err != nil {
			return err
		}
	}
	return s.askFor(ctx, earlyQuestion, rig.Li.Name)
}

// Steps become small here, so that the flush comes clearly before the compaction.
const nearMarks = demoThreshold * 2 / 3

func (s *story) fillContext(ctx context.Context, tokens int) (sessions.Session, error) {
	from := &s.remarks
	if tokens < nearMarks && len(s.minutes) > 0 {
		from = &s.minutes
	}
	if len(*from) == 0 {
		return sessions.Session{}, fmt.Errorf("expected the story's chatter to fill the context, it is at its end with %d tokens", tokens)
	}
	u := (*from)[0]
	*from = (*from)[1:]
	if _, err := s.askAs(ctx, u); err != nil {
		return sessions.Session{}, err
	}
	row, err := s.readSession(ctx)
	if err == nil {
		s.show.showContext(row.TotalTokens)
	}
	return row, err
}

func (s *story) growTo(ctx context.Context) error {
	s.minutes, s.remarks = rig.LongMessages, rig.ShortMessages
	row, err := s.readSession(ctx)
	for err == nil && row.TotalTokens < int(demoThreshold*demoFlushRatio) && row.FlushCount == 0 {
		row, err = s.fillContext(ctx, row.TotalTokens)
	}
	return err
}

// awaitFlush checks that every planted fact is in memory before anything was compacted.
func (s *story) awaitFlush(ctx context.Context) error {
	if _, err := s.book.WaitLine(ctx, s.first.Name, "Executing memory flush"); err != nil {
		return err
	}
	row, err := s.awaitState(ctx, "a memory flush", func(r sessions.Session) bool { return r.FlushCount > 0 })
	if err != nil {
		return err
	}
	if row.CompactionCount > 0 {
		return fmt.Errorf("expected the flush before any compaction, got %d compactions", row.CompactionCount)
	}
	facts, lines, err := s.newMemories(ctx)
	if err != nil {
		return err
	}
	s.show.showAction(fmt.Sprintf("记忆整理 memory flush：%s tokens 时存下 %d 条 facts saved", withCommas(row.TotalTokens), len(facts)), lines...)
	for _, f := range plantedFacts {
		if !describeMemory(facts, f.proof) {
			return fmt.Errorf("expected a memory that holds %q, got %q", f.proof, lines)
		}
	}
	return s.pauseFor(ctx, 2500*time.Millisecond)
}

// words are of facts that were not yet shown.
func (s *story) newMemories(ctx context.Context) (all []memory.Memory, words []string, err error) {
	all, err = s.listMemories(ctx)
	for _, m := range all[min(s.known, len(all)):] {
		words = append(words, fmt.Sprintf("[%s] %s", m.Kind, m.Content))
	}
	s.known = len(all)
	return all, words, err
}

func describeMemory(facts []memory.Memory, words string) bool {
	for _, m := range facts {
		if strings.Contains(m.Content, words) {
			return true
		}
	}
	return false
}

// awaitCompaction compares the compaction log with the gateway's line, and checks that no event was lost.
func (s *story) awaitCompaction(ctx context.Context) error {
	row, err := s.readSession(ctx)
	for err == nil && row.TotalTokens < demoThreshold && row.CompactionCount == 0 {
		row, err = s.fillContext(ctx, row.TotalTokens)
	}
	if err != nil {
		return err
	}
	if _, err := s.awaitState(ctx, "a compaction", func(r sessions.Session) bool { return r.CompactionCount > 0 }); err != nil {
		return err
	}
	line, err := s.book.WaitLine(ctx, s.first.Name, "Compaction completed")
	if err != nil {
		return err
	}
	log, err := s.store.Compactions.Compactions(ctx, s.key, 1)
	if err != nil {
		return err
	}
	if len(log) == 0 {
		return errors.New("expected a row in the compaction log, got none")
	}
	e := log[0]
	switch {
	case e.Outcome != "committed" || e.TokensAfter >= e.TokensBefore:
		return fmt.Errorf("expected a committed compaction to fewer tokens, got outcome %q, %d -> %d", e.Outcome, e.TokensBefore, e.TokensAfter)
	case line.IntField("tokens_before") != e.TokensBefore || line.IntField("tokens_after") != e.TokensAfter:
		return fmt.Errorf("expected the gateway's log to say %d -> %d tokens, got %s", e.TokensBefore, e.TokensAfter, line.Raw)
	}
	s.show.showAction(
		fmt.Sprintf("压缩 compaction：%s → %s tokens", withCommas(e.TokensBefore), withCommas(e.TokensAfter)),
		fmt.Sprintf("第 %d–%d 条进了摘要 events %d–%d are in a summary; flush: %s", e.StartSeq, e.EndSeq, e.StartSeq, e.EndSeq, e.FlushOutcome))
	if err := s.checkLog(ctx); err != nil {
		return err
	}
	return s.pauseFor(ctx, 2500*time.Millisecond)
}

func (s *story) checkLog(ctx context.Context) error {
	events, err := s.countEvents(ctx)
	if err != nil {
		return err
	}
	for text, id := range s.ids {
		if e, ok := events[id]; !ok || e.Content != text {
			return fmt.Errorf("expected the event log to hold %q after the compaction, got %q", text, e.Content)
		}
	}
	return nil
}

func (s *story) askRecall(ctx context.Context) error {
	fact := plantedFacts[0]
	events, err := s.countEvents(ctx)
	if err != nil {
		return err
	}
	if e := events[s.ids[fact.Text]]; !e.Archived {
		return fmt.Errorf("expected %q to have left the context, it is still in it", fact.Text)
	}
	if err := s.askFor(ctx, recallQuestion, fact.proof, "记忆"); err != nil {
		return err
	}
	s.show.showAction("凭记忆答对 answered from memory：" + fact.proof)
	return s.pauseFor(ctx, 2*time.Second)
}

func (s *story) rollGateway(ctx context.Context) (err error) {
	if s.second, err = s.startGateway(ctx, "B"); err != nil {
		return err
	}
	s.model.Add(openaitest.WhenFunc(matchQuestion(inFlight), answerSlowly(1500*time.Millisecond)).Times(1))
	flying, err := s.sayAs(ctx, inFlight)
	if err != nil {
		return err
	}
	if _, err := s.model.Wait(ctx, matchQuestion(inFlight)); err != nil {
		return fmt.Errorf("expected a turn to be in flight: %w", err)
	}
	if err := s.first.Terminate(); err != nil {
		return err
	}
	s.show.showReplica("A", s.first.PID(), "SIGTERM", true)
	drain, err := s.book.WaitLine(ctx, "A", "Draining")
	if err != nil {
		return err
	}
	s.show.showReplica("A", s.first.PID(), "收尾 draining", true)
	s.show.showAction(fmt.Sprintf("A 收到 SIGTERM，还有 %d 轮在答 · A got SIGTERM with %d turn in flight", drain.IntField("turns"), drain.IntField("turns")))
	between, err := s.sayAs(ctx, inBetween)
	if err != nil {
		return err
	}
	if _, err := s.awaitAnswer(ctx, flying); err != nil {
		return err
	}
	if err := s.awaitStop(ctx); err != nil {
		return err
	}
	if _, err := s.awaitAnswer(ctx, between); err != nil {
		return err
	}
	return s.pauseFor(ctx, 1500*time.Millisecond)
}

func (s *story) awaitStop(ctx context.Context) error {
	sum, err := s.book.WaitLine(ctx, "A", "Shutdown memory flush summary")
	if err != nil {
		return err
	}
	if sum.IntField("sessions") != 1 || sum.IntField("owed") != 0 {
		return fmt.Errorf("expected the summary of the stop to count 1 session and nothing owed, got %s", sum.Raw)
	}
	if err := s.first.WaitExit(ctx); err != nil {
		return err
	}
	s.show.showReplica("A", s.first.PID(), "已退出 exit 0", false)
	facts, lines, err := s.newMemories(ctx)
	if err != nil {
		return err
	}
	s.show.showAction(fmt.Sprintf("A exit 0 · Shutdown memory flush summary: sessions %d, flushed %d, memories %d, owed %d",
		sum.IntField("sessions"), sum.IntField("flushed"), sum.IntField("memories"), sum.IntField("owed")), lines...)
	if !describeMemory(facts, inFlight.Text) {
		return fmt.Errorf("expected the stop to save %q, which was said since the last flush, got %q", inFlight.Text, lines)
	}
	return nil
}

func (s *story) afterRoll(ctx context.Context) error {
	if err := s.askFor(ctx, afterRestart, plantedFacts[2].proof); err != nil {
		return err
	}
	s.show.showAction("重启后仍记得 remembered after the restart：" + plantedFacts[2].proof)
	return s.pauseFor(ctx, 1500*time.Millisecond)
}

func (s *story) killGateway(ctx context.Context) (err error) {
	s.model.Add(openaitest.WhenFunc(matchQuestion(beforeKill), neverAnswer).Times(1))
	id, err := s.sayAs(ctx, beforeKill)
	if err != nil {
		return err
	}
	if _, err := s.model.Wait(ctx, matchQuestion(beforeKill)); err != nil {
		return fmt.Errorf("expected a turn to be in flight: %w", err)
	}
	if err := s.second.Kill(); err != nil {
		return err
	}
	if n := len(s.repliesTo(id, s.tracks[id])); n > 0 {
		return fmt.Errorf("expected no answer before the kill, got %d", n)
	}
	s.show.showReplica("B", s.second.PID(), "kill -9", false)
	s.show.showAction("B 确认了消息，没答完就被 kill -9 · B was killed with the message acknowledged and not answered")
	if err := s.dingtalk.WaitNoConns(ctx); err != nil {
		return err
	}
	s.show.showAction("C 启动，等 B 的租约到期（" + demoLeaseTTL + "）· C starts and waits for B's lease to run out")
	if s.third, err = s.startGateway(ctx, "C"); err != nil {
		return err
	}
	text, err := s.awaitAnswer(ctx, id)
	if err != nil {
		return err
	}
	if !strings.Contains(text, "Alex") {
		return fmt.Errorf("expected the answer to %q to hold %q, got %q", beforeKill.Text, "Alex", text)
	}
	s.show.showAction("C 接手，答了那条消息 · C took over and answered it")
	return s.pauseFor(ctx, 1500*time.Millisecond)
}
