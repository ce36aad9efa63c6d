package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"ebb/bot/dingtalk/dingtalktest"
)

// crowd are people who talk in many conversations at once. Every message carries a mark of its own, and the model's
// answer repeats the marks of what it answers: so each answer is found again, even where several were given together.
type crowd struct {
	sim    *dingtalktest.Server
	prefix string // of its conversations
	stop   context.CancelFunc
	ended  chan struct{}

	mu   sync.Mutex
	n    int
	open map[string]*question
}

// question is one message and what became of it.
type question struct {
	mark string
	done chan struct{} // closed at its first answer

	pushed   time.Time // the frame left the simulator
	answered time.Time // the call of the webhook arrived there; both are to be read after done
}

// took is what DingTalk sees of a turn.
func (q *question) took() time.Duration { return q.answered.Sub(q.pushed) }

// answerLimit is how long an answer is waited for before the row is given up.
const answerLimit = 30 * time.Second

// wait returns when the question is answered.
func (q *question) wait(ctx context.Context) error {
	limit := time.NewTimer(answerLimit)
	defer limit.Stop()
	select {
	case <-q.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-limit.C:
		return fmt.Errorf("message %s has no answer after %s", q.mark, answerLimit)
	}
}

var marks = regexp.MustCompile(`q\d{7}`)

func newCrowd(ctx context.Context, sim *dingtalktest.Server, prefix string) *crowd {
	ctx, stop := context.WithCancel(ctx)
	c := &crowd{sim: sim, prefix: prefix, stop: stop, ended: make(chan struct{}), open: map[string]*question{}}
	go func() {
		defer close(c.ended)
		// Looks at each line once and never finds what it looks for: it ends with ctx.
		_, _ = sim.WaitEntry(ctx, "the end of the talk", func(e dingtalktest.Entry) bool { c.note(e); return false })
	}()
	return c
}

func (c *crowd) close() {
	c.stop()
	<-c.ended
}

// note takes the two moments of a question from the transcript.
func (c *crowd) note(e dingtalktest.Entry) {
	if e.Kind != "push" && e.Kind != "reply" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Kind == "push" {
		if q := c.open[e.MsgID]; q != nil && q.pushed.IsZero() {
			q.pushed = e.Time
		}
		return
	}
	for _, mark := range marks.FindAllString(e.Detail, -1) {
		if q := c.open[mark]; q != nil {
			delete(c.open, mark)
			q.answered = e.Time
			close(q.done)
		}
	}
}

// ask says something in a conversation.
func (c *crowd) ask(conversation, text string) *question {
	c.mu.Lock()
	c.n++
	q := &question{mark: fmt.Sprintf("q%07d", c.n), done: make(chan struct{})}
	c.open[q.mark] = q
	c.mu.Unlock()
	if text == "" {
		text = "请问发布窗口和回滚负责人是谁？另外压测报告放在哪里了，今天下班前能看到吗"
	}
	c.sim.Say(dingtalktest.Message{
		MsgID: q.mark, Conversation: c.conversation(conversation), Sender: zhang.id, SenderNick: zhang.name, Text: q.mark + " " + text,
	})
	return q
}

// conversation is the id of one of the crowd's conversations.
func (c *crowd) conversation(name string) string { return "cid-" + c.prefix + "-" + name }

// numbered is the name of the nth of the ordinary conversations.
func numbered(n int) string { return fmt.Sprintf("n%05d", n) }

// closed keeps benchInFlight messages in hand for a while: whoever got an answer speaks again, in the next of its
// conversations. It returns when all are answered.
func (c *crowd) closed(ctx context.Context, d time.Duration, conversations int) (turns int, took time.Duration, err error) {
	began := time.Now()
	turns, err = c.each(benchInFlight, func(worker, i int) (bool, error) {
		if time.Since(began) >= d {
			return false, nil
		}
		n := (worker + i*benchInFlight) % (conversations - conversations%benchInFlight)
		return true, c.ask(numbered(n), "").wait(ctx)
	})
	return turns, time.Since(began), err
}

// once says one message in each of so many conversations, from first on.
func (c *crowd) once(ctx context.Context, first, conversations int) error {
	_, err := c.each(benchInFlight, func(worker, i int) (bool, error) {
		n := worker + i*benchInFlight
		if n >= conversations {
			return false, nil
		}
		return true, c.ask(numbered(first+n), "").wait(ctx)
	})
	return err
}

// each runs step again and again in every worker, until it says that it is over or fails. It returns how often it went well.
func (c *crowd) each(workers int, step func(worker, i int) (more bool, err error)) (int, error) {
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

// pacedConversations are so many that nobody speaks before being answered, at the rates that are asked for.
const pacedConversations = 200

// paced says rate messages a second for a while, whatever comes back, in one conversation after another, round and round.
func (c *crowd) paced(ctx context.Context, d time.Duration, rate int) []*question {
	var asked []*question
	began := time.Now()
	for i := range int(d.Seconds() * float64(rate)) {
		if !until(ctx, began.Add(time.Duration(i)*time.Second/time.Duration(rate))) {
			break
		}
		asked = append(asked, c.ask(numbered(i%pacedConversations), ""))
	}
	return asked
}

// all waits for every answer and returns how long each took.
func all(ctx context.Context, asked []*question) ([]time.Duration, error) {
	var took []time.Duration
	for _, q := range asked {
		if err := q.wait(ctx); err != nil {
			return nil, err
		}
		took = append(took, q.took())
	}
	return took, nil
}

// until waits for a moment and reports whether ctx is still alive.
func until(ctx context.Context, at time.Time) bool {
	t := time.NewTimer(time.Until(at))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
