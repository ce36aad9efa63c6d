package rig

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"ebb/bot/dingtalk/dingtalktest"
)

// Askers are people who talk in many conversations at once. Every message carries a mark, and answers repeat the
// marks of their questions, for one answer may serve several.
type Askers struct {
	sim    *dingtalktest.Server
	prefix string // prefix of its conversations
	stop   func()

	mu   sync.Mutex
	n    int
	open map[string]*Question
}

// Question is one message and its answer.
type Question struct {
	mark string
	done chan struct{} // closed at the first answer

	Pushed   time.Time // time at which the frame left the simulator
	Answered time.Time // time of the webhook's call; to be read after done
}

// ResponseTime is the turn's, as DingTalk sees it.
func (q *Question) ResponseTime() time.Duration { return q.Answered.Sub(q.Pushed) }

// AnswerTimeout bounds the wait for an answer.
const AnswerTimeout = 30 * time.Second

// Wait returns when the question is answered.
func (q *Question) Wait(ctx context.Context) error { return q.WaitWithin(ctx, AnswerTimeout) }

// WaitWithin is [Question.Wait] with a bound of its own.
func (q *Question) WaitWithin(ctx context.Context, within time.Duration) error {
	limit := time.NewTimer(within)
	defer limit.Stop()
	select {
	case <-q.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-limit.C:
		return fmt.Errorf("message %s has no answer after %s", q.mark, within)
	}
}

// MaxInFlight bounds a closed loop's unanswered messages.
const MaxInFlight = 32

// MarkPattern finds the marks of questions.
var MarkPattern = regexp.MustCompile(`q\d{7}`)

// NewAskers returns askers whose marks begin with prefix. They follow the transcript until [Askers.Close].
func NewAskers(ctx context.Context, sim *dingtalktest.Server, prefix string) *Askers {
	c := &Askers{sim: sim, prefix: prefix, open: map[string]*Question{}}
	c.stop = FollowTranscript(ctx, sim, c.noteEntry)
	return c
}

// Close stops reading the transcript.
func (c *Askers) Close() { c.stop() }

// FollowTranscript calls note with each entry of the transcript, until ctx ends or stop, which waits for the last
// call.
func FollowTranscript(ctx context.Context, sim *dingtalktest.Server, note func(dingtalktest.Entry)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// The predicate sees each entry once and never matches: the wait ends with ctx.
		_, _ = sim.WaitEntry(ctx, "the end of the talk", func(e dingtalktest.Entry) bool { note(e); return false })
	}()
	return func() {
		cancel()
		<-ended
	}
}

func (c *Askers) noteEntry(e dingtalktest.Entry) {
	if e.Kind != "push" && e.Kind != "reply" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Kind == "push" {
		if q := c.open[e.MsgID]; q != nil && q.Pushed.IsZero() {
			q.Pushed = e.Time
		}
		return
	}
	for _, mark := range MarkPattern.FindAllString(e.Detail, -1) {
		if q := c.open[mark]; q != nil {
			delete(c.open, mark)
			q.Answered = e.Time
			close(q.done)
		}
	}
}

// Ask sends a message in a conversation.
func (c *Askers) Ask(conversation, text string) *Question { return c.AskAbout(conversation, text, nil) }

// AskPlainly sends the usual question.
func (c *Askers) AskPlainly(conversation string) *Question { return c.Ask(conversation, "") }

// AskAbout sends a message that quotes another one; nil: none.
func (c *Askers) AskAbout(conversation, text string, quote *dingtalktest.Quote) *Question {
	c.mu.Lock()
	c.n++
	q := &Question{mark: fmt.Sprintf("q%07d", c.n), done: make(chan struct{})}
	c.open[q.mark] = q
	c.mu.Unlock()
	if text == "" {
		text = "请问发布窗口和回滚负责人是谁？另外压测报告放在哪里了，今天下班前能看到吗"
	}
	c.sim.Say(dingtalktest.Message{
		MsgID: q.mark, Conversation: c.ConversationID(conversation), Sender: Zhang.ID, SenderNick: Zhang.Name, Text: q.mark + " " + text, Quote: quote,
	})
	return q
}

// ConversationID is the id of an asker's conversation.
func (c *Askers) ConversationID(name string) string { return "cid-" + c.prefix + "-" + name }

// ConversationName names the nth ordinary conversation.
func ConversationName(n int) string { return fmt.Sprintf("n%05d", n) }

// RunClosedLoop keeps MaxInFlight messages in flight: each worker asks in its next conversation after its answer. It
// returns when all are answered. ask sends a question in a conversation.
func (c *Askers) RunClosedLoop(ctx context.Context, d time.Duration, conversations int, ask func(conversation string) *Question) (turns int, took time.Duration, err error) {
	began := time.Now()
	turns, err = c.runWorkers(MaxInFlight, func(worker, i int) (bool, error) {
		if time.Since(began) >= d {
			return false, nil
		}
		n := (worker + i*MaxInFlight) % (conversations - conversations%MaxInFlight)
		return true, ask(ConversationName(n)).Wait(ctx)
	})
	return turns, time.Since(began), err
}

// AskOnce asks in each of some conversations, from first on.
func (c *Askers) AskOnce(ctx context.Context, first, conversations int) error {
	_, err := c.runWorkers(MaxInFlight, func(worker, i int) (bool, error) {
		n := worker + i*MaxInFlight
		if n >= conversations {
			return false, nil
		}
		return true, c.Ask(ConversationName(first+n), "").Wait(ctx)
	})
	return err
}

// runWorkers returns the number of successful steps. A worker ends with a failed step.
func (c *Askers) runWorkers(workers int, step func(worker, i int) (more bool, err error)) (int, error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	var errs []error
	sum := 0
	for w := range workers {
		wg.Go(func() {
			for i := 0; ; i++ {
				more, err := step(w, i)
				if !more || err != nil {
					mu.Lock()
					defer mu.Unlock()
					sum += i
					errs = append(errs, err)
					return
				}
			}
		})
	}
	wg.Wait()
	return sum, errors.Join(errs...)
}

// PacedConversations suffice for an answer before the conversation's next question, at the benchmarks' rates.
const PacedConversations = 200

// AskPaced sends rate messages a second in rotating conversations, without waiting.
func (c *Askers) AskPaced(ctx context.Context, d time.Duration, rate int) []*Question {
	var asked []*Question
	began := time.Now()
	for i := range int(d.Seconds() * float64(rate)) {
		if !WaitUntil(ctx, began.Add(time.Duration(i)*time.Second/time.Duration(rate))) {
			break
		}
		asked = append(asked, c.Ask(ConversationName(i%PacedConversations), ""))
	}
	return asked
}

// WaitAll returns the response times.
func WaitAll(ctx context.Context, asked []*Question) ([]time.Duration, error) {
	var took []time.Duration
	for _, q := range asked {
		if err := q.Wait(ctx); err != nil {
			return nil, err
		}
		took = append(took, q.ResponseTime())
	}
	return took, nil
}
