package view_test

import (
	"testing"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/reload"
	"ebb/bot/wording"
	"ebb/sessions"
)

// The conversation's language decides where a message says little: commands in Latin letters, a bare yes, code, addresses, names. The
// sender's own words count before those of other people. Quotes and earlier reminders do not count.
func TestLanguageOfAConversation(t *testing.T) {
	t.Parallel()
	views, languages := bottest.NewViews(t, bot.Config{}), wording.Languages{Preset: "zh", Assigned: reload.New(reload.Values{}).Language}
	by := func(who, text string) sessions.Event {
		return sessions.Event{Role: sessions.RoleUser, SenderID: sessions.UserID(who), Content: text}
	}
	answer := func(text string) sessions.Event { return sessions.Event{Role: sessions.RoleAssistant, Content: text} }
	scheduled := func(who, text string, kind sessions.ScheduleKind) sessions.Event {
		e := by(who, text)
		e.Message = &sessions.Message{Text: text, Scheduled: &sessions.Scheduled{Kind: kind}}
		return e
	}
	quoted := func(who, quote, text string) sessions.Event {
		e := by(who, "")
		e.Message = &sessions.Message{Text: text, Quote: &sessions.Quote{Text: quote, Who: "李娜(u2)", Shown: quote}}
		e.Content = e.Message.Quote.Lead("Ebb") + text
		return e
	}
	zh := []sessions.Event{by("u", "明天几点开会"), answer("三点。"), by("v", "好的，我也来")}
	en := []sessions.Event{by("u", "when is the meeting"), answer("At three."), by("v", "I will join you")}
	mixed := []sessions.Event{by("u", "明天几点开会"), answer("三点。"), by("e", "could you summarize this?"), answer("Sure."), by("u", "谢谢")}
	// weak says little by itself, so that the conversation decides.
	weak := []string{
		"/help", "/help remind", "/status", "/model", "/compact", "/forget me", "/export me", "/memory show 3", "/whoami", "/usage", "/new", "/stop", "/dance", "Help", "help?",
		"/help@Ebb", "/forget @张三", "/remind list", "/remind delete 3", "/compact tail_turns=5", "yes", "ok", "cancel", "OK.", "👍", "🎉🎉", "https://example.com/a", "`rm -rf`", "```\nfunc main() {}\n```",
		"com.foo.Bar", "ERR_TIMEOUT", "API", "v1.2.3", "123", "@张三", "[图片]", "[文件: 报告.pdf]", "> 张伟: what is this", "明日の会議は何時ですか", "{\"a\": 1}", "",
	}
	for _, text := range weak {
		for who, tail := range map[string][]sessions.Event{"u": zh, "v": zh, "new": zh} {
			bottest.Want(t, text+" in Chinese by "+who, languages.Choose("cid", views.Words.LanguageWords(tail, by(who, text))), "zh")
		}
		for who, tail := range map[string][]sessions.Event{"u": en, "new": en, "e": mixed} {
			bottest.Want(t, text+" in English by "+who, languages.Choose("cid", views.Words.LanguageWords(tail, by(who, text))), "en")
		}
		bottest.Want(t, text+" by another in a mixed group", languages.Choose("cid", views.Words.LanguageWords(mixed, by("u", text))), "zh")
	}
	for _, tt := range []struct {
		name string
		tail []sessions.Event
		e    sessions.Event
		lang string
	}{
		{"first help", nil, by("e", "/help"), "en"},
		{"first help in Chinese", nil, by("u", "/帮助"), "zh"},
		{"help with English words", zh, by("e", "/help me please"), "en"},
		{"help in a sentence", zh, by("e", "/help how can I set a reminder?"), "en"},
		{"help after a hello", []sessions.Event{by("u", "大家好"), by("e", "hello"), answer("Hi!")}, by("e", "/help"), "en"},
		{"hello in Chinese", zh, by("u", "hello"), "zh"},
		{"hello of a newcomer", zh, by("e", "hello"), "en"},
		{"words of a command in a Chinese group", zh, by("e", "/compact the release dates"), "en"},
		{"Chinese words of a command in an English group", en, by("u", "/compact 端口"), "zh"},
		{"Chinese command in an English group", en, by("u", "/状态"), "zh"},
		{"English behind a Chinese command", en, by("u", "/压缩 the release dates"), "zh"},
		{"English command before", []sessions.Event{by("e", "/help please"), answer("Just talk to me")}, by("e", "/status"), "en"},
		{"command after an answer", []sessions.Event{by("u", "/new"), answer("好，我们从头开始。")}, by("u", "/status"), "zh"},
		{"command after an answer in English", []sessions.Event{by("u", "/new"), answer("A new conversation begins.")}, by("u", "/status"), "en"},
		{"English with a Chinese name", zh, by("e", "What did 张伟 say about the release?"), "en"},
		{"Chinese with English terms", en, by("u", "deploy 一下 staging 的服务"), "zh"},
		{"traditional Chinese", en, by("u", "這個功能什麼時候上線"), "zh"},
		{"mention with English", zh, by("e", "@张伟 can you look at it?"), "en"},
		{"mention with Chinese", en, by("u", "@Zhang 看一下"), "zh"},
		{"a Chinese quote with English", zh, quoted("e", "明天三点开会", "what does this mean?"), "en"},
		{"an English quote with Chinese", en, quoted("u", "the meeting is at three", "什么意思"), "zh"},
		{"a quote alone", en, quoted("e", "明天三点开会", ""), "en"},
		{"a reminder in Chinese", en, scheduled("u", "交周报", sessions.Remind), "zh"},
		{"a reminder in English", zh, scheduled("e", "send the weekly report to me", sessions.Remind), "en"},
		{"a reminder of a word, by a Chinese", zh, scheduled("u", "standup", sessions.Remind), "zh"},
		{"a reminder of a word, by a newcomer", zh, scheduled("e", "call mom", sessions.Remind), "en"},
		{"a reminder of a sign", en, scheduled("u", "🍵", sessions.Remind), "en"},
		{"a question of a schedule", en, scheduled("u", "总结本周进展", sessions.AskModel), "zh"},
		{"a reminder is no word of its conversation", append(en[:3:3], scheduled("u", "交周报", sessions.Remind)), by("u", "/status"), "en"},
		{"words for a reminder", zh, by("u", "/remind call mom"), "en"},
		{"Chinese words for a reminder", en, by("u", "/remind 明天9点 站会"), "zh"},
		{"erased words", []sessions.Event{by("u", sessions.ErasedText), by("v", "when is it?")}, by("u", "/status"), "en"},
		{"code of an English speaker", en, by("u", "```\n// 注释\nx := 1\n```"), "en"},
		{"code with a Chinese question", en, by("u", "```\nwhat is x\n```\n这段代码什么意思"), "zh"},
		{"French", zh, by("e", "pouvez-vous résumer la réunion d'hier"), "en"},
	} {
		bottest.Want(t, tt.name, languages.Choose("cid", views.Words.LanguageWords(tt.tail, tt.e)), tt.lang)
	}
}
