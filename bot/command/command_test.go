package command_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/reload"
	"ebb/bot/wording"
	"ebb/memory"
	"ebb/sessions"
)

// chatting is a world whose memory has one fact, long and the asker's own, where root is an administrator.
func chatting(t *testing.T, fact memory.Memory) *bottest.World {
	t.Helper()
	fact.ID = 3
	return bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) {
		bottest.Knows(c, &bottest.Rights{Fact: memory.Known{Memory: fact, Own: true}})
		c.Admins = []sessions.UserID{"u-root"}
	}})
}

// A wrong argument is answered by a line of usage, not by the whole help, and nothing is done by mistake.
func TestCommandUsageIsOneLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := chatting(t, memory.Memory{Scope: memory.ScopeGroup, Content: "上线定在周五"})
		for i, c := range []struct {
			who, command string
			want         wording.Phrase
			args         []any
		}{
			{"alice", "/memory forget", wording.Usage, nil},
			{"alice", "/memory forget three", wording.Usage, nil},
			{"alice", "/memory forget 3 4", wording.Usage, nil},
			{"alice", "/记忆 删", wording.Usage, nil},
			{"alice", "/memory forget 4", wording.NoMemory, []any{4}},
			{"alice", "/memory 7", wording.NoPage, []any{7}},
			{"alice", "/forget", wording.Usage, nil},
			{"alice", "/forget me now", wording.Usage, nil},
			{"alice", "/forget me no", wording.ForgetNothing, nil},
			{"alice", "/忘记我不", wording.ForgetNothing, nil},
			{"alice", "/forget me yes", wording.NotAsked, nil},
			{"alice", "/forget 0123", wording.ForgetNumber, []any{123, 123}},
			{"alice", "/forget @bob", wording.NotAdmin, nil},
			{"root", "/forget 0123", wording.ForgetNumber, []any{123, 123}},
			{"root", "/forget @bob", wording.UnknownPerson, nil},
			{"alice", "/export", wording.Usage, nil},
			{"alice", "/export you", wording.Usage, nil},
			{"alice", "/export me 0", wording.Usage, nil},
			{"alice", "/export me two", wording.Usage, nil},
			{"root", "/new please", wording.Usage, nil},
			{"root", "/compact undo it", wording.Usage, nil},
			{"alice", "/dance", wording.NoCommand, nil},
			{"alice", "/statsu", wording.NoCommandNear, []any{"status"}},
			{"alice", "/忘了", wording.NoCommandNear, []any{"忘记"}},
			{"alice", "/memory promote", wording.NotAdmin, nil},
			{"alice", "/compact undo it", wording.NotAdmin, nil},
			{"alice", "/forget last week", wording.Usage, nil},
			{"alice", "/forget #3 no", wording.ForgetNothing, nil},
			{"alice", "/memory promote 3", wording.NotAdmin, nil},
		} {
			text := w.AnswerTo(fmt.Sprint("m", i), c.who, c.command)
			lang := wording.LanguageOf(wording.WordsOfCommand(c.command), "zh")
			wanted := wording.Say(c.want, lang, c.args...)
			if c.want == wording.Usage {
				name, _, _ := strings.Cut(c.command, " ")
				if wanted = wording.Say(wording.Usage, lang, "`"+name); strings.HasPrefix(text, wanted) {
					wanted = text
				}
			}
			bottest.Want(t, c.command, text, wanted)
			if strings.Contains(text, "\n") {
				t.Errorf("the answer to %q is %q", c.command, text)
			}
		}
		bottest.Want(t, "model calls", len(w.Model.Requests("chat")), 0)
	})
}

// A deletion that fails on its way says that a part is gone, and one that fails before says that nothing is.
func TestForgetReportsItsProgress(t *testing.T) {
	t.Parallel()
	for half, why := range map[int]wording.Phrase{1: wording.NoRights, 2: wording.MemoryHalf} {
		synctest.Test(t, func(t *testing.T) {
			w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) {
				bottest.Knows(c, &bottest.Rights{Fact: memory.Known{Memory: memory.Memory{ID: 3, Scope: memory.ScopeGroup, Content: "上线定在周五"}, Own: true}, Half: half})
			}})
			bottest.Want(t, "receipt", w.AnswerTo("m", "alice", "/记忆 删除 3"), wording.Say(why, "zh"))
		})
	}
}

// A fact that can't be shared is refused with the reason.
func TestPromoteReportsTheReason(t *testing.T) {
	t.Parallel()
	for m, why := range map[*memory.Memory]wording.Phrase{
		{Scope: memory.ScopeTeam, Kind: memory.KindDecision}: wording.TeamsAlready,
		{Scope: memory.ScopeUser, Kind: memory.KindProfile}:  wording.OnlyTheirs,
		{Scope: memory.ScopeSession, Kind: memory.KindTask}:  wording.NotShared,
		{Scope: memory.ScopeGroup, Kind: memory.KindTask}:    wording.NotShared,
		{Scope: memory.ScopeSession, Kind: memory.KindFact}:  wording.OnlyHere,
		{Scope: memory.ScopeGroup, Kind: memory.KindDigest}:  wording.OnlyHere,
	} {
		t.Run(fmt.Sprint(m.Scope, " ", m.Kind), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m.Content = "报告写到一半"
				w := chatting(t, *m)
				bottest.Want(t, "the answer", w.AnswerTo("m", "root", "/memory promote #3"), wording.Say(why, "en", 3))
			})
		})
	}
}

// A list cuts long facts and names their readers; a single fact is shown whole. The answer to a deletion quotes the
// fact, so that people see that it was the right one. The log keeps no word of it.
func TestCommandMemoryOfALongFact(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		content := "机房钥匙在" + strings.Repeat("东", 90) + "柜"
		w := chatting(t, memory.Memory{Scope: memory.ScopeTeam, Kind: memory.KindFact, Content: content})
		list := w.AnswerTo("m1", "alice", "/记忆")
		for _, part := range []string{"- #3 【全团队】机房钥匙在" + strings.Repeat("东", 75) + "… (", "还有 24 条更早的：`/记忆 2`"} {
			if !strings.Contains(list, part) {
				t.Errorf("%q is not in the list:\n%s", part, list)
			}
		}
		for i, command := range []string{"/记忆 查看 3", "/记忆 #3", "/记忆查看３"} {
			if text := w.AnswerTo(fmt.Sprint("s", i), "alice", command); !strings.Contains(text, content) || !strings.Contains(text, "全团队 · 事实") {
				t.Errorf("the answer to %s is %q", command, text)
			}
		}
		before := len(w.Store.Mem.Events(t.Context(), bottest.Group))
		text := w.AnswerTo("f", "alice", "/记忆 忘记 ＃３")
		bottest.Want(t, "the answer", text, "🗑️ 已删除这条记忆：“机房钥匙在"+strings.Repeat("东", 55)+"…”，以及 2 条相关消息。")
		events := w.Store.Mem.Events(t.Context(), bottest.Group)
		bottest.Want(t, "events", len(events), before+2)
		bottest.Want(t, "in the log", events[len(events)-1].Content, "🗑️ 已删除编号 3 的记忆，以及 2 条相关消息。")
	})
}

// An export is in the reader's language and has what a person said, but not the commands.
func TestCommandExport(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := chatting(t, memory.Memory{Scope: memory.ScopeUser, Kind: memory.KindPreference, Content: "喜欢靠窗", SaidAt: bottest.Lunch})
		for command, wanted := range map[string]string{
			"/导出我": "## 与你有关或由你说出的记忆\n\n- 2026-11-20 04:00 · #3 · 个人 · 偏好 · 喜欢靠窗\n\n## 你说过的话\n\n- 2026-11-20 04:00 · 私聊 · 早上好\n" +
				"- 2026-11-20 04:00 · 值班群 · /存 备用钥匙在前台\n- 2026-11-20 04:00 · 值班群 · /home/li 里有什么\n- 2026-11-20 04:00 · 值班群 · [定时 2026-11-20 04:00] /help\n" +
				"\n## 其他带有你名字的记录\n\n- 2026-11-20 04:00 · 加密编号 · $:LWCP\n- 2026-11-20 · 模型用量 · qwen · 900 + 80 tokens\n- 2026-11-20 04:00 · 由你设置的提醒 · 交周报 · 到时提醒 · 每周五 05:00 · 时间 2026-11-20 05:00\n",
			"/export me": "## What is remembered about you or was said by you\n\n- 2026-11-20 04:00 · #3 · person · preference · 喜欢靠窗\n\n## What you said\n\n- 2026-11-20 04:00 · private · 早上好\n" +
				"- 2026-11-20 04:00 · 值班群 · /存 备用钥匙在前台\n- 2026-11-20 04:00 · 值班群 · /home/li 里有什么\n- 2026-11-20 04:00 · 值班群 · [定时 2026-11-20 04:00] /help\n" +
				"\n## Other records with your name\n\n- 2026-11-20 04:00 · encrypted id · $:LWCP\n- 2026-11-20 · use of models · qwen · 900 + 80 tokens\n- 2026-11-20 04:00 · reminder that you set · 交周报 · reminds · every Friday at 05:00 · due 2026-11-20 05:00\n",
		} {
			m := bottest.Said(command, "alice", command)
			m.ConversationID, m.ConversationType = "p-alice", sessions.Private
			w.Post(m)
			synctest.Wait()
			texts := w.Wire.Texts()
			bottest.Want(t, "export", strings.TrimSpace(texts[len(texts)-1])+"\n", wanted)
		}
	})
}

// strangers is a cabinet that keeps nothing of anyone.
type strangers struct{ bottest.Rights }

func (*strangers) FactsOf(context.Context, sessions.RobotCode, sessions.UserID, int64, int) ([]memory.Memory, error) {
	return nil, nil
}

func (*strangers) MessagesOf(context.Context, sessions.RobotCode, sessions.UserID, int64, int) ([]memory.PersonMessage, error) {
	return nil, nil
}

func (*strangers) RecordsOf(context.Context, sessions.RobotCode, sessions.UserID) ([]memory.Record, error) {
	return nil, nil
}

// A person of whom nothing is kept is answered, and not with silence.
func TestExportOfNothingIsAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { bottest.Knows(c, &strangers{}) }})
		m := bottest.Said("m1", "alice", "/导出我")
		m.ConversationID, m.ConversationType = "p-alice", sessions.Private
		w.Post(m)
		synctest.Wait()
		texts := w.Wire.Texts()
		if len(texts) != 1 || texts[0] != wording.Say(wording.ExportEmpty, "zh") {
			t.Errorf("answered %q, want %q", texts, wording.Say(wording.ExportEmpty, "zh"))
		}
	})
}

// A bot that keeps no files answers as one that has none so far.
func TestCommandsWithoutKeptFiles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{})
		for i, c := range []struct {
			text string
			want wording.Phrase
		}{{"/files", wording.FilesNone}, {"/keep", wording.KeepNone}, {"keep this file", wording.KeepNone}, {"/forget file 1", wording.KeptUnknown}} {
			bottest.Want(t, c.text, w.AnswerTo(fmt.Sprint(i), "alice", c.text), wording.Say(c.want, "en"))
		}
	})
}

// U10: the Chinese words of a command decide the language of its answer, the names of people aside. Behind a name in Latin letters the
// sender's other messages decide, then those of other people. A conversation's own language stands over that.
func TestLanguageOfCommands(t *testing.T) {
	t.Parallel()
	set := reload.New(reload.Values{Groups: map[sessions.ConversationID]reload.Group{"cidEn": {Language: "en"}}})
	views, languages := bottest.NewViews(t, bot.Config{}), wording.Languages{Preset: "zh", Assigned: set.Language}
	for command, lang := range map[string]string{
		"/status": "en", "/状态": "zh", "／状态": "zh", "/help@Ebb": "en", "/compact the dates": "en", "/compact 端口": "zh",
		"/forget @张三": "en", "/forget @张三 yes": "en", "/forget @张三 确认": "zh", "/忘记 @Bob": "zh", "/forget ＠张三": "en",
		"帮助": "zh", "Help?": "en", "/5": "zh", "": "zh", "@张三 please answer": "en", "what is this": "en",
	} {
		bottest.Want(t, command, languages.Choose("cid", views.Words.LanguageWords(nil, sessions.Event{Content: command})), lang)
		if lang == "en" && strings.HasPrefix(command, "/") && command != "/compact the dates" {
			tail := []sessions.Event{{Role: sessions.RoleUser, SenderID: "u", Content: "你好"}, {Role: sessions.RoleUser, SenderID: "v", Content: "hello"}}
			bottest.Want(t, command+" by who writes Chinese", languages.Choose("cid", views.Words.LanguageWords(tail, sessions.Event{Content: command, SenderID: "u"})), "zh")
			bottest.Want(t, command+" by who writes English", languages.Choose("cid", views.Words.LanguageWords(tail, sessions.Event{Content: command, SenderID: "v"})), "en")
			after := append(tail[:2:2], sessions.Event{Role: sessions.RoleUser, SenderID: "u", Content: "ok"}, sessions.Event{Role: sessions.RoleUser, SenderID: "v", Content: "确认"})
			bottest.Want(t, command+" by who writes Chinese, after an ok", languages.Choose("cid", views.Words.LanguageWords(after, sessions.Event{Content: command, SenderID: "u"})), "zh")
			bottest.Want(t, command+" by another", languages.Choose("cid", views.Words.LanguageWords(tail[:1], sessions.Event{Content: command, SenderID: "w"})), "zh")
			answered := []sessions.Event{{Role: sessions.RoleUser, SenderID: "u", Content: "/new"}, {Role: sessions.RoleAssistant, Content: "好，我们从头开始。"}}
			bottest.Want(t, command+" after an answer", languages.Choose("cid", views.Words.LanguageWords(answered, sessions.Event{Content: command, SenderID: "u"})), "zh")
		}
		for _, answer := range []string{"yes", "cancel", "OK."} {
			tail := []sessions.Event{{Role: sessions.RoleUser, SenderID: "u", Content: "你好"}}
			bottest.Want(t, answer+" by who writes Chinese", languages.Choose("cid", views.Words.LanguageWords(tail, sessions.Event{Content: answer, SenderID: "u"})), "zh")
			bottest.Want(t, answer+" alone", languages.Choose("cid", views.Words.LanguageWords(nil, sessions.Event{Content: answer})), "en")
		}
		bottest.Want(t, command+" where English is set", languages.Choose("cidEn", views.Words.LanguageWords(nil, sessions.Event{Content: command})), "en")
	}
}
