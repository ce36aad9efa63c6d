package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"ebb/bot/dingtalk/dingtalktest"
	"ebb/cmd/lab/rig"
	"ebb/sessions"
)

type story struct {
	*stage
	said             []string          // acknowledged messages
	ids              map[string]string // message id by text
	tracks           map[string]string // by message id
	minutes, remarks []rig.Utterance   // still to be said
	first            *rig.Process      // gateway A stops cleanly
	known            int               // memories shown
	second           *rig.Process      // gateway B is killed
	third            *rig.Process      // gateway C stays
}

type storyBeat struct {
	name    string // in errors
	caption string
	limit   time.Duration
	run     func(context.Context) error
}

// playAll names the beat and the failed expectation in its error.
func (s *story) playAll(ctx context.Context) error {
	s.ids, s.tracks = map[string]string{}, map[string]string{}
	s.show.updateScene(func(c *scene) { c.Threshold, c.FlushAt = demoThreshold, int(demoThreshold*demoFlushRatio) })
	beats := []storyBeat{
		{"start", "启动网关 A · gateway A starts", 30 * time.Second, s.beginStory},
		{"talk", "三个人在群里说话，先说四件要紧的事 · three people talk; four facts come first", 40 * time.Second, s.talkAboutFacts},
		{"growth", "话越来越多，上下文涨到 90% · more talk, the context grows to 90%", 60 * time.Second, s.growTo},
		{"flush", "90%：先把要紧的事存进记忆 · memory is flushed before anything is cut", 30 * time.Second, s.awaitFlush},
		{"compaction", "100%：旧的部分压缩成摘要 · the older part becomes a summary", 60 * time.Second, s.awaitCompaction},
		{"recall", "原话已不在上下文里，还记得吗 · the words are gone; does it remember?", 30 * time.Second, s.askRecall},
		{"rolling restart", "滚动重启：B 上线，A 收到 SIGTERM · rolling restart", 60 * time.Second, s.rollGateway},
		{"memory after the restart", "重启之后问早先的事 · a question about the time before the restart", 30 * time.Second, s.afterRoll},
		{"kill", "kill -9：刚确认的消息不会丢 · an acknowledged message survives kill -9", 60 * time.Second, s.killGateway},
		{"stop", "说个没完？按卡片上的停止 · a member stops a long answer by its button", 30 * time.Second, s.stopAnswer},
		{"card", "卡片：边写边显示，点赞会记下 · a card fills, and a thumb is kept", 30 * time.Second, s.rateAnswer},
	}
	for _, b := range beats {
		s.show.showCaption(b.caption)
		one, stop := context.WithTimeoutCause(ctx, b.limit, fmt.Errorf("it took longer than %s", b.limit))
		err := b.run(one)
		stop()
		if err != nil {
			return fmt.Errorf("expectation failed in %q: %w", b.name, err)
		}
	}
	if err := s.printClosing(ctx); err != nil {
		return fmt.Errorf("expectation failed in %q: %w", "result", err)
	}
	return nil
}

// sayAs waits for the acknowledgement.
func (s *story) sayAs(ctx context.Context, u rig.Utterance) (string, error) {
	id := s.dingtalk.Say(dingtalktest.Message{Conversation: string(demoGroup), Sender: u.Speaker.ID, Text: u.Text})
	s.show.showMessage(u.Speaker.Name, u.Text, false)
	ack, err := s.dingtalk.WaitAck(ctx, id)
	if err != nil {
		return "", err
	}
	if ack.Code != 200 {
		return "", fmt.Errorf("expected the ack of %q to be 200, got %d", u.Text, ack.Code)
	}
	s.said = append(s.said, id)
	s.ids[u.Text] = id
	if s.tracks[id], err = s.trackOf(ctx, id); err != nil {
		return "", err
	}
	return id, s.refreshScene(ctx)
}

func (s *story) awaitAnswer(ctx context.Context, id string) (string, error) {
	r, err := s.replyTo(ctx, id, s.tracks[id])
	if err != nil {
		return "", fmt.Errorf("expected an answer: %w", err)
	}
	text := oneLine(readableText(r.Text))
	if r.TrackID != "" {
		s.show.showCard(r.TrackID, text, true)
	} else {
		s.show.showMessage(demoBotName, text, true)
	}
	return text, s.refreshScene(ctx)
}

// askAs leaves the viewer time to read the answer.
func (s *story) askAs(ctx context.Context, u rig.Utterance) (string, error) {
	id, err := s.sayAs(ctx, u)
	if err != nil {
		return "", err
	}
	text, err := s.awaitAnswer(ctx, id)
	if err != nil {
		return "", err
	}
	return text, s.pauseFor(ctx, 650*time.Millisecond)
}

// The answer must have the words.
func (s *story) askFor(ctx context.Context, u rig.Utterance, words ...string) error {
	text, err := s.askAs(ctx, u)
	if err != nil {
		return err
	}
	for _, w := range words {
		if !strings.Contains(text, w) {
			return fmt.Errorf("expected the answer to %q to hold %q, got %q", u.Text, w, text)
		}
	}
	return nil
}

// pauseFor returns at once without a terminal.
func (s *story) pauseFor(ctx context.Context, d time.Duration) error {
	if !s.show.isTerminal() {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *story) awaitState(ctx context.Context, what string, done func(sessions.Session) bool) (sessions.Session, error) {
	for {
		row, err := s.readSession(ctx)
		if err == nil && done(row) {
			return row, s.refreshScene(ctx)
		}
		if err == nil {
			err = fmt.Errorf("the session has %d tokens, %d flushes, %d compactions", row.TotalTokens, row.FlushCount, row.CompactionCount)
		}
		s.show.updateScene(func(c *scene) { c.Tokens = row.TotalTokens })
		select {
		case <-time.After(40 * time.Millisecond):
		case <-ctx.Done():
			return row, fmt.Errorf("expected %s: %w; %w", what, context.Cause(ctx), err)
		}
	}
}

func (s *story) refreshScene(ctx context.Context) error {
	row, err := s.readSession(ctx)
	if err != nil {
		return err
	}
	facts, err := s.listMemories(ctx)
	if err != nil {
		return err
	}
	c := storyCounts{
		Acked: len(s.said), Flushes: row.FlushCount, Compactions: row.CompactionCount, Memories: len(facts),
		OpenCards: len(s.dingtalk.OpenCards()), Violations: len(s.dingtalk.Violations()), Illegal: len(s.model.Illegal()),
	}
	for _, id := range s.said {
		if n := len(s.repliesTo(id, s.tracks[id])); n > 0 {
			c.Answered++
			if n > 1 {
				c.Doubled++
			}
		}
	}
	s.show.updateScene(func(sc *scene) { sc.Counts, sc.Tokens = c, row.TotalTokens })
	return nil
}

func (s *story) printClosing(ctx context.Context) error {
	if err := s.refreshScene(ctx); err != nil {
		return err
	}
	var table []tableRow
	s.show.updateScene(func(c *scene) { table = closingTable(c.Counts) })
	for _, v := range s.dingtalk.Violations() {
		s.show.showAction("违规 violation", v.String())
	}
	var bad []string
	for _, r := range table {
		if !r.Good {
			bad = append(bad, r.Label+": "+r.Value)
		}
	}
	took := time.Since(s.show.began).Seconds()
	if len(bad) > 0 {
		s.show.printEnd(table, fmt.Sprintf("✘ 不符合预期 not as expected, %.0f s", took))
		return fmt.Errorf("not as expected: %s", strings.Join(bad, "; "))
	}
	s.show.printEnd(table, fmt.Sprintf("✔ 全部符合预期，用时 %.0f 秒 · everything as expected, %.0f s", took, took))
	return nil
}

func readableText(text string) string {
	for _, p := range []rig.Person{rig.Zhang, rig.Li, rig.Alex, you} {
		text = strings.ReplaceAll(text, "@"+p.ID, "@"+p.Name)
	}
	return strings.TrimSpace(text)
}
