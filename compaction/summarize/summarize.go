package summarize

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"ebb/compaction"
	"ebb/compaction/audit"
	"ebb/sessions"
	"ebb/sessions/llm"
	"ebb/sessions/retry"
)

// Summarize summarizes r.Events as a continuation of r.Previous, in chunks that fit the model's window. A text that is
// longer than a chunk is read in pieces. After an error the result holds the cost, and the summary of the turns up to
// [Result.Through].
func (s *Summarizer) Summarize(ctx context.Context, r Request) (Result, error) {
	if len(r.Events) == 0 {
		return Result{}, errors.New("no events to summarize")
	}
	t := s.newRun(r)
	for len(t.rest) > 0 {
		if err := t.summarizeNext(ctx); err != nil {
			t.res.Text, t.res.Tokens, t.res.Through = t.done.text, t.done.tokens, t.done.through
			return t.res, err
		}
	}
	t.res.Text, t.res.Tokens = t.done.text, t.done.tokens
	return t.res, nil
}

// summarizeNext makes Retries attempts, then one of the chat's model, which also takes the remaining chunks.
func (t *summaryRun) summarizeNext(ctx context.Context) error {
	if t.summarizer.Deadline > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, t.summarizer.Deadline)
		defer stop()
	}
	c := t.nextChunk()
	for try := 1; ; try++ {
		a, text, err := t.askModel(ctx, c.request, c.events)
		if err == nil {
			t.acceptText(ctx, c, a, text)
			return nil
		}
		zerolog.Ctx(ctx).Warn().Err(err).Str("model", nameOf(c.request.Model)).Int("attempt", try).Msg("Summary not usable")
		err = fmt.Errorf("summarize events %d to %d, attempt %d: %w", c.events[0].Seq, c.events[len(c.events)-1].Seq, try, err)
		if ctx.Err() != nil {
			return err
		}
		fault, known := errors.AsType[*llm.CallError](err)
		switch {
		case known && (fault.Overflow() || fault.MayOverflow() && t.halved == 0 && c.size > t.summarizer.Context/4) && t.halveChunk(&c):
			try-- // the same chunk would overflow again; a smaller one is a new request
		case (!known || fault.Temporary() && !fault.Overflow()) && try < t.summarizer.Retries && t.model == t.summarizer.Name:
			if err := waitJittered(ctx, time.Duration(try)*t.summarizer.Backoff); err != nil {
				return fmt.Errorf("summarize events %d to %d: %w", c.events[0].Seq, c.events[len(c.events)-1].Seq, err)
			}
		case t.model != "":
			t.model, t.limit, t.halved = "", t.summarizer.chunkLimit(t.rest), maxHalved
			c = t.nextChunk()
		default:
			zerolog.Ctx(ctx).Error().Err(err).Str("model", nameOf(c.request.Model)).Int("attempts", try).Msg("Summary given up")
			return err
		}
		if errors.Is(err, audit.ErrTalk) {
			t.remind(&c)
		}
	}
}

// reminders follow the data of a request whose answer was a reply, by language.
var reminders = map[string]string{
	"zh": "上一次的输出是在回复聊天，不是摘要。不要回复任何人，不要提问，只按要求输出摘要。",
	"en": "The last output replied to the chat and was no summary. Do not reply to anyone and do not ask: write the summary as instructed, and nothing else.",
}

func (t *summaryRun) remind(c *chunkRequest) {
	reminder := "\n\n" + reminders[compaction.Language(t.summarizer.Language)]
	instructions, data := c.request.Messages[0].Content, c.request.Messages[1].Content
	if n := t.summarizer.Counter.Count(reminder); !strings.HasSuffix(data, reminder) && c.request.MaxOutput > n {
		c.request.Messages, c.request.MaxOutput = llm.Prompt(instructions, data+reminder), c.request.MaxOutput-n
	}
}

func (t *summaryRun) acceptText(ctx context.Context, c chunkRequest, a llm.Response, text string) {
	text, _ = splitAttachments(text)
	if t.summarizer.Kind != llm.KindDigest { // readers of a digest can't read the messages
		t.attached = joinAttachments(t.attached, attachmentsOf(c.events))
	}
	text = t.auditText(ctx, c, text)
	t.res.Text, t.res.Tokens, t.res.Model, t.rest = text, t.summarizer.Counter.Count(text), a.UsedModel(), t.rest[len(c.events):]
	last := c.events[len(c.events)-1]
	if len(t.rest) == 0 || t.rest[0].Role == sessions.RoleUser && last.Role != sessions.RoleUser {
		t.done = summaryPart{t.res.Text, t.res.Tokens, last.Seq}
		if section := t.attachments(); section != "" {
			t.done.text += "\n\n" + section
			t.done.tokens = t.summarizer.Counter.Count(t.done.text)
		}
		t.res.Through = last.Seq
	}
	if t.model != t.summarizer.Name {
		t.res.Fallback = a.UsedModel()
	}
}

// waitJittered has a jitter of a fifth, so that sessions do not retry in step.
func waitJittered(ctx context.Context, d time.Duration) error {
	retry.Sleep(ctx, retry.Pauses{First: d, Max: d, Jitter: 0.2}.After(0))
	return context.Cause(ctx)
}
