package choice

import (
	"cmp"
	"context"
	"slices"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"ebb/bot/parts"
	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/sessions"
)

// Config has the dependencies and settings of a [Chooser]. All are required.
type Config struct {
	Shared     *parts.Shared
	Views      *view.Builder
	Commands   Commands
	Counts     Counts
	Reached    func(limit sessions.Limit) // counts notices
	StaleAfter time.Duration
}

// Chooser decides what turns answer.
type Chooser struct {
	cfg    Config
	Kinds  Kinds
	Limits Limits
	stale  staleNotices
	spoken *lru.Cache[sessions.Key, string] // language of a session's last turn
}

// maxSpoken bounds the sessions whose language is known before their view is read.
const maxSpoken = 4096

// New returns a chooser.
func New(cfg Config) *Chooser {
	spoken, _ := lru.New[sessions.Key, string](maxSpoken) // it fails only without a size
	return &Chooser{
		cfg: cfg, Kinds: Kinds{cfg.Views.Words, cfg.StaleAfter}, Limits: Limits{cfg.Shared, cfg.Counts, cfg.Reached}, stale: newStaleNotices(), spoken: spoken,
	}
}

// Choose takes messages from the first n that wait; 0: from all. At least one waits. The turn is counted against the limits.
func (c *Chooser) Choose(ctx context.Context, lease sessions.Lease, v sessions.View, n int) (Choice, error) {
	return c.Limits.admit(ctx, c.open(lease, v, n), c.cfg.Commands)
}

func (c *Chooser) open(lease sessions.Lease, v sessions.View, n int) Choice {
	usable := c.cfg.Views.Choices.Settings(v.Session).Window.Usable()
	for i, room := 0, usable/2; i < len(v.Pending) && room >= 0; i++ { // no turn takes more
		v.Pending[i].Tokens = c.cfg.Shared.Counter.Count(sessions.Lines(v.Pending[i].Content))
		room -= v.Pending[i].Tokens
	}
	tail := v.Tail // with commands: they have a language too
	c.cfg.Views.Show(&v)
	kind, take := c.Kinds.triage(v.Pending[:cmp.Or(n, len(v.Pending))], usable, c.cfg.Shared.Now(), c.cfg.Commands)
	made := Choice{Lease: lease, View: v, Kind: kind, Asked: slices.Clone(v.Pending[:take])}
	if take > 0 {
		words := c.cfg.Views.Words.LanguageWords(slices.Concat(tail, made.Asked[:take-1]), made.Asked[take-1])
		made.Lang = c.cfg.Shared.Languages.Choose(v.Session.ConversationID, words)
		c.spoken.Add(lease.Key, made.Lang)
	}
	return made
}

// WaitingLanguage is the language of messages before their view is read. Words that say little leave it at that of the session's last
// turn.
func (c *Chooser) WaitingLanguage(key sessions.Key, asked []sessions.Event) string {
	last := len(asked) - 1
	words := c.cfg.Views.Words.LanguageWords(asked[:last], asked[last])
	if before, known := c.spoken.Get(key); known && !words.Clear {
		return before
	}
	return c.cfg.Shared.Languages.Choose(asked[0].Message.ConversationID, words)
}

// FixedWords is the answer of a turn that asks no model and is no command. It is empty where the senders have a notice, or need none.
func (c *Chooser) FixedWords(ctx context.Context, made Choice) (string, error) {
	at := made.Asked[0].CreatedAt.In(c.cfg.Shared.Location).Format("01-02 15:04")
	switch made.Kind {
	case Remind, Missed:
		return scheduledAnswer(made, c.cfg.Views.Words.OwnWords, c.Kinds.StaleAfter, c.cfg.Shared.Now()), nil
	case Limited:
		return c.Limits.notice(ctx, made)
	case Stale:
		if c.stale.cover(made.Lease.Key, made.Asked) {
			return "", nil
		}
		return wording.Say(wording.Stale, made.Lang, at), nil
	case Dead:
		return wording.Say(wording.Dead, made.Lang, at), nil
	case Rejected:
		return decidedLines(made, wording.ApprovalRejected), nil
	case Expired:
		return expiredLines(made), nil
	case Quota:
		return wording.Say(wording.OverQuota, made.Lang), nil
	}
	return wording.Say(wording.Here, made.Lang), nil // to a bare mention
}

// NoteAnswered notes a committed turn, whose senders need no second notice soon.
func (c *Chooser) NoteAnswered(made Choice) {
	if made.Kind == Stale {
		c.stale.record(made.Lease.Key, made.Asked)
	}
}
