package command_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/wording"
	"ebb/compaction"
	"ebb/sessions"
)

// ownInTests takes a policy, and full_context_turns from 1 to 9.
func ownInTests(_ sessions.ConversationID, settings string) (compaction.Settings, error) {
	set := bottest.SmallSettings
	var own struct {
		Policy string `json:"policy"`
		A      int    `json:"full_context_turns"`
	}
	if err := json.Unmarshal([]byte(settings), &own); err != nil || own.A > 9 {
		return set, fmt.Errorf("full_context_turns: got %d, want 1 to 9", own.A)
	}
	if own.Policy != "" {
		p, ok := compaction.Policies[own.Policy]
		if !ok {
			return set, fmt.Errorf("policy: got %q, want a known one", own.Policy)
		}
		set.Policy = p
	}
	if own.A > 0 {
		set.Policy.TailTurns = own.A
	}
	return set, nil
}

// S13: an admin sets how a conversation is compacted by command; it is checked, kept with the session, and taken back.
func TestSettingsByCommand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { c.Admins, c.Own = []sessions.UserID{"u-root"}, ownInTests }})
		n := 0
		answer := func(who, command string) string {
			n++
			w.Post(bottest.Said(fmt.Sprint("c", n), who, command))
			bottest.After(time.Minute)
			return w.Wire.Texts()[len(w.Wire.Sends())-1]
		}
		for _, c := range []struct{ who, command, want, kept string }{
			{"alice", "/压缩 策略 turns", wording.Say(wording.NotAdmin, "zh"), ""},
			{"root", "/压缩 策略 turns", "策略 turns", `{"policy":"turns"}`},
			{"root", "/压缩 设置 A 3", "full_context_turns=3, policy=turns", `{"full_context_turns":3,"policy":"turns"}`},
			{"root", "/compact set full_context_turns 99", "full_context_turns: got 99, want 1 to 9", `{"full_context_turns":3,"policy":"turns"}`},
			{"root", "/压缩 策略 不存在", `policy：收到 "不存在"`, `{"full_context_turns":3,"policy":"turns"}`},
			{"root", "/compact set daily_tokens 0", "daily_tokens", `{"full_context_turns":3,"policy":"turns"}`},
			{"root", "/compact set", "full_context_turns=3, policy=turns", `{"full_context_turns":3,"policy":"turns"}`},
			{"root", "/status", "full_context_turns=3, policy=turns", `{"full_context_turns":3,"policy":"turns"}`},
			{"root", "/压缩 设置 a 默认", "policy=turns", `{"policy":"turns"}`},
			{"root", "/压缩 策略 default", "策略 token_budget", ""},
			{"root", "/compact a=99 the dates", "full_context_turns: got 99", ""},
		} {
			if got := answer(c.who, c.command); !strings.Contains(got, c.want) {
				t.Errorf("%s: %q, want %q in it", c.command, got, c.want)
			}
			if kept := w.View().Session.Settings; kept != c.kept {
				t.Errorf("%s: the session keeps %q, want %q", c.command, kept, c.kept)
			}
		}
	})
}

// S3: settings for one compaction hold for that one alone.
func TestSettingsForOneCompaction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { c.Admins, c.Own = []sessions.UserID{"u-root"}, ownInTests }})
		w.Fill(3000)
		w.Post(bottest.Said("c1", "root", "/compact policy=archive keep the dates"))
		bottest.After(time.Minute)
		rows := bottest.Attempts(t, w.Store.Mem.Compactions)
		if len(rows) != 1 || rows[0].Policy != "archive" || rows[0].Outcome != sessions.CompactionCommitted || rows[0].Focus != "keep the dates" {
			t.Fatalf("attempts %+v", rows)
		}
		if s := w.View().Session; s.Settings != "" || w.Views.Choices.Settings(s).Policy.Name != "token_budget" {
			t.Errorf("it stays: %q", s.Settings)
		}
	})
}

// A mistake of one letter in a word of /compact is answered with a question, and with focus in front it is one.
func TestNearMisses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { c.Admins = []sessions.UserID{"u-root"} }})
		w.Fill(3000)
		for i, c := range [][2]string{{"/compact logs", "/compact log"}, {"/compact focus logs", "✅"}, {"/压缩日志", "token_budget/manual"}} {
			w.Post(bottest.Said(fmt.Sprint("n", i), "root", c[0]))
			bottest.After(time.Minute)
			if got := w.Wire.Texts()[len(w.Wire.Sends())-1]; !strings.Contains(got, c[1]) {
				t.Errorf("%s: %q, want %q in it", c[0], got, c[1])
			}
		}
		if rows := bottest.Attempts(t, w.Store.Mem.Compactions); len(rows) != 1 || rows[0].Focus != "logs" {
			t.Errorf("attempts %+v", rows)
		}
	})
}
