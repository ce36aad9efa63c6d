package turn_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/chat"
	"ebb/bot/off"
	"ebb/bot/turn/answer"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// hang is a statement that the server never answers: it ends with its caller's patience. Later ones are answered.
type hang struct{ ended time.Duration }

func (h *hang) wait(ctx context.Context) error {
	if h.ended > 0 {
		return nil
	}
	began := time.Now()
	<-ctx.Done()
	h.ended = time.Since(began)
	return context.Cause(ctx)
}

type hangingLimits struct {
	sessions.Limiter
	hang *hang
}

func (l hangingLimits) Admit(ctx context.Context, limits sessions.Limits, a sessions.Askers) ([]sessions.Reached, error) {
	if err := l.hang.wait(ctx); err != nil {
		return nil, err
	}
	return l.Limiter.Admit(ctx, limits, a)
}

type hangingFiles struct {
	off.Files
	hang *hang
}

func (f hangingFiles) Kept(ctx context.Context, _ sessions.Key, _ []int64) ([]sessions.File, error) {
	return nil, f.hang.wait(ctx)
}

type hangingApprovals struct {
	off.Approvals
	hang *hang
}

func (a hangingApprovals) FindApprovals(ctx context.Context, _ sessions.Key, _ sessions.ApprovalQuery) ([]sessions.FoundApproval, error) {
	return nil, a.hang.wait(ctx)
}

func (a hangingApprovals) WaitingApprovals(ctx context.Context, _ sessions.Key) ([]sessions.Approval, int64, error) {
	return nil, 0, a.hang.wait(ctx)
}

type hangingMedia struct {
	answer.NoMedia
	hang *hang
}

func (m hangingMedia) Show(ctx context.Context, _ sessions.Key, _ sessions.ModelID, _ []sessions.Event) error {
	return m.hang.wait(ctx)
}

// askingTool needs an approval.
type askingTool struct{ bottest.HandTool }

func (askingTool) NeedsApproval() bool { return true }

// A statement that hangs inside a turn ends: it holds the slot for seconds, and the turn begins again. People read the answer, and no
// apology for a model that took too long.
func TestHangingStatementsEndATurn(t *testing.T) {
	t.Parallel()
	picture := bottest.Said("m1", "alice", "hello")
	picture.Attachments = []sessions.Attachment{{Kind: "picture", Code: "x"}}
	for name, tt := range map[string]struct {
		message sessions.Message
		config  func(*bot.Config, *hang)
		chat    func() func(context.Context, llm.Request) (llm.Response, error)
		want    string
		most    time.Duration
	}{
		"limits": {message: bottest.Said("m1", "alice", "hello"), most: 5 * time.Second, want: "re: alice(u-alice): hello", config: func(c *bot.Config, h *hang) {
			c.Limits.PersonTurns = 10
			c.Stores.Limits = hangingLimits{c.Stores.Limits, h}
		}},
		"the decision on a call": {message: bottest.Said("m1", "alice", "/approve"), most: 5 * time.Second, want: "Nothing waits for an approval", config: func(c *bot.Config, h *hang) {
			c.Approvals = hangingApprovals{hang: h}
		}},
		"the calls that wait": {message: bottest.Said("m1", "alice", "hello"), most: 5 * time.Second, want: "/approve 1", config: func(c *bot.Config, h *hang) {
			c.Approvals, c.Tools = hangingApprovals{hang: h}, []chat.Tool{askingTool{bottest.HandTool{Name: "act"}}}
		}, chat: func() func(context.Context, llm.Request) (llm.Response, error) {
			return func(context.Context, llm.Request) (llm.Response, error) {
				return bottest.Calls(bottest.Call("1", "act", `{"n":1}`)), nil
			}
		}},
		"the files of earlier calls": {message: bottest.Said("m1", "alice", "hello"), most: 5 * time.Second, want: "re: alice(u-alice): hello", config: func(c *bot.Config, h *hang) {
			c.Files = hangingFiles{hang: h}
		}, chat: func() func(context.Context, llm.Request) (llm.Response, error) {
			n := 0
			return func(_ context.Context, r llm.Request) (llm.Response, error) {
				switch n++; n {
				case 1:
					return bottest.Calls(bottest.Call("1", "act", `{"n":1}`)), nil
				case 2:
					panic("broken behind the call")
				}
				return bottest.Text("re: " + bottest.LastWords(r)), nil
			}
		}},
		"pictures": {message: picture, most: 3 * time.Minute, want: "re: alice(u-alice): hello", config: func(c *bot.Config, h *hang) { c.Media = hangingMedia{hang: h} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h, model := &hang{}, &bottest.Script{}
				w := bottest.Start(t, bottest.Setup{Model: model, Config: func(c *bot.Config) {
					tt.config(c, h)
					if tt.chat != nil {
						model.Chat = tt.chat()
					}
				}})
				w.Post(tt.message)
				bottest.After(10 * time.Minute)
				if h.ended == 0 || h.ended > tt.most {
					t.Errorf("the statement ended after %v, want %v at most", h.ended, tt.most)
				}
				if texts := w.Wire.Texts(); len(texts) != 1 || !strings.Contains(texts[0], tt.want) {
					t.Errorf("replies are %q, want one with %q", texts, tt.want)
				}
			})
		})
	}
}

// A message whose quote breaks each turn before the choice is set aside too, and its neighbour is answered.
func TestPanicsBeforeTheChoiceAreCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{})
		w.Store.Fail(func(op string) error {
			if op == "quoted" {
				panic("broken by a quote")
			}
			return nil
		})
		m := bottest.Said("m1", "alice", "what of this?")
		m.Quote = &sessions.Quote{ID: "m0", Text: "words"}
		w.Post(m)
		bottest.After(time.Minute)
		w.Say("m2", "bob", "q1")
		bottest.After(time.Minute)
		bottest.Want(t, "state of the message that breaks", w.Store.Mem.Events(t.Context(), bottest.Group)[0].State, sessions.Dead)
		texts := w.Wire.Texts()
		bottest.Want(t, "replies", len(texts), 2)
		bottest.Want(t, "the neighbour's answer", texts[len(texts)-1], "re: bob(u-bob): q1")
	})
}

// A panic while messages are marked gives the slot back: otherwise one broken row stops all conversations.
func TestPanicWhileMarkingKeepsNoSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { c.MaxConcurrent = 1 }}) // four turns
		n := 0
		w.Store.Fail(func(op string) error {
			if op == "begin" {
				if n++; n <= 10 {
					panic("broken by a row")
				}
			}
			return nil
		})
		w.Post(bottest.Said("m1", "alice", "q1"))
		bottest.After(time.Minute)
		bottest.Want(t, "replies", w.Wire.Texts(), []string{"re: alice(u-alice): q1"})
	})
}
