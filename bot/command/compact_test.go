package command_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// U11: /compact log and /status say why an attempt failed, what it took and what became of memory, without the provider's
// words.
func TestFailedCompactionReportsItsReason(t *testing.T) {
	t.Parallel()
	secret := errors.New("dial tcp 10.0.0.1: sk-key refused")
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"unreachable": {&llm.CallError{Class: llm.Unreachable, Err: secret}, "连不上模型服务"},
		"denied":      {&llm.CallError{Class: llm.Denied, Err: secret}, "请管理员检查密钥和权限"},
		"late":        {context.DeadlineExceeded, "超时"},
		"other":       {secret, "模型没有给出可用的摘要"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := &bottest.Script{Summary: func(context.Context, llm.Request) (llm.Response, error) { return llm.Response{}, c.err }}
				w := bottest.Start(t, bottest.Setup{Model: m, Config: func(c *bot.Config) { c.Admins = []sessions.UserID{"u-root"} }})
				w.Fill(5000)
				bottest.After(time.Minute)
				answer := func(id, command string) string {
					w.Post(bottest.Said(id, "root", command))
					bottest.After(time.Minute)
					return w.Wire.Texts()[len(w.Wire.Sends())-1]
				}
				for _, command := range []string{"/状态", "/压缩记录"} {
					got := answer(command, command)
					if !strings.Contains(got, c.want) || strings.Contains(got, "10.0.0.1") || strings.Contains(got, "sk-key") {
						t.Errorf("%s: %q, want %q in it", command, got, c.want)
					}
				}
				m.Mu.Lock()
				m.Summary = func(context.Context, llm.Request) (llm.Response, error) {
					return llm.Response{Text: bottest.GoodSummary, Finish: llm.FinishStop, Model: "cheap", Usage: sessions.Usage{Prompt: 1200, Completion: 34}}, nil
				}
				m.Mu.Unlock()
				bottest.After(time.Hour)
				answer("again", "/压缩")
				if got := answer("log", "/压缩记录"); !strings.Contains(got, "token_budget/") || !strings.Contains(got, "cheap ") || !strings.Contains(got, "tokens；记忆：") {
					t.Errorf("the log says nothing of model, tokens and memory: %q", got)
				}
			})
		})
	}
}

// A word of /compact that wants something behind it answers its usage alone, and compacts nothing.
func TestFocusWithoutWordsIsAnsweredWithItsUsage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { c.Admins, c.Language = []sessions.UserID{"u-root"}, "en" }})
		for i := range 4 {
			w.Say(fmt.Sprint("m", i), "alice", bottest.Prose(i, 300))
		}
		for i, command := range []string{"/compact focus", "/compact focus  ", "/压缩 重点", "/compact FOCUS"} {
			w.Post(bottest.Said(fmt.Sprint("c", i), "root", command))
			bottest.After(time.Minute)
			if got := w.Wire.Texts()[len(w.Wire.Sends())-1]; !strings.HasPrefix(got, "Usage: `/compact") && !strings.HasPrefix(got, "用法：`/压缩") {
				t.Errorf("%s: answered %q, want the usage", command, got)
			}
		}
		bottest.Want(t, "compactions", w.State(bottest.Group).CompactionCount, 0)
		w.Post(bottest.Said("last", "root", "/compact focus the gateway"))
		bottest.After(time.Minute)
		bottest.Want(t, "compactions with a focus", w.State(bottest.Group).CompactionCount, 1)
	})
}

// For a full context that no compaction makes smaller, the reply has the reason.
func TestFullContextReportsTheReason(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first, last int // words of two messages, one after the other
		why         string
	}{
		"newest turn alone": {0, 6000, "都是最近的消息"},
		"short old message": {5, 6000, "较早的消息太短，不值得做摘要"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { c.Admins = []sessions.UserID{"u-root"} }})
				if c.first > 0 {
					w.Say("first", "alice", bottest.Prose(0, c.first))
				}
				w.Say("last", "alice", bottest.Prose(1, c.last))
				w.Post(bottest.Said("c", "root", "/压缩"))
				bottest.After(time.Minute)
				got := w.Wire.Texts()[len(w.Wire.Sends())-1]
				if !strings.HasPrefix(got, "没有可以压缩的内容："+c.why+"。上下文仍为 ") {
					t.Errorf("the answer is %q", got)
				}
			})
		})
	}
}
