package command

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"ebb/bot/parts"
	"ebb/bot/reload"
	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/sessions"
)

// Each entry is whole: names in both languages, an own usage line and a description in both, and a handler. A use with an argument has
// an example. A word belongs to one use, and its usage line and its example lead to it.
func TestTableIsWhole(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for i := range Commands {
		c := &Commands[i]
		if len(c.ZH) == 0 || len(c.EN) == 0 || len(c.Uses) == 0 {
			t.Errorf("command %d lacks a name or a use: %v", i, c.names())
			continue
		}
		for name := range c.written() {
			if names[name.text] || name.text != strings.ToLower(name.text) {
				t.Errorf("/%s stands twice, or in capitals", name.text)
			}
			names[name.text] = true
		}
		for j := range c.Uses {
			u := &c.Uses[j]
			if u.Run == nil || (len(u.ZH) == 0) != (len(u.EN) == 0) {
				t.Errorf("%v: use %d lacks a handler or the words of a language", c.EN, j)
			}
			for _, lang := range []string{"zh", "en"} {
				line := u.Usage.In(lang)
				if does := u.Does.In(lang); does == "" || isChinese(does) != (lang == "zh") || isChinese(line) != (lang == "zh") {
					t.Errorf("%q, %q: want both in %s", line, does, lang)
				}
				if got := Commands.Parse(numbered.Replace(line)); got.Use != u {
					t.Errorf("%s is parsed as %+v", line, got)
				}
				example := u.Example.In(lang)
				if got := Commands.Parse(example); (example == "") != (u.Args == NoArgs) || example != "" && (got.Use != u || !u.takes(got.Arg)) {
					t.Errorf("%s: the example %q is parsed as %+v", line, example, got)
				}
			}
		}
	}
}

// numbered writes a number where a usage line says that one follows.
var numbered = strings.NewReplacer("编号", "3", " N", " 3", "#N", "#3")

func isChinese(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Han, r) })
}

// Each name is found spaced and glued to each word of its uses, in any case and behind either slash.
func TestNamesParseGluedAndSpaced(t *testing.T) {
	t.Parallel()
	for i := range Commands {
		c := &Commands[i]
		for _, name := range c.names() {
			for j := range c.Uses {
				u := &c.Uses[j]
				for _, word := range u.words() {
					for _, text := range []string{
						"/" + name + " " + word, "／" + name + "\t" + strings.ToUpper(word) + " ", "/" + strings.ToUpper(name+word), "/" + name + word + "@Ebb",
					} {
						if got := Commands.Parse(text); got.Command != c || got.Use != u || got.Arg != "" {
							t.Errorf("%q is parsed as %+v, want the use %q of %s", text, got, word, name)
						}
					}
				}
			}
			if got := Commands.Parse("/" + name); got.Command != c || got.Rest != "" {
				t.Errorf("/%s is parsed as %+v", name, got)
			}
		}
	}
}

// People write commands without the blank, in full-width signs and in capitals. Text that only begins with a slash is no
// command. Text that looks like a command and is none is answered in a line, and no model is asked.
func TestCommandsAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	for text, wanted := range map[string]string{
		"/忘记我确认": "forget|我 确认|true", "/忘记我": "forget|我|true", "／忘记我 确认": "forget|我 确认|true", "/忘记上一条": "forget|上一条|true",
		"/忘记@王芳": "forget|@王芳|true", "/忘记@王芳 确认": "forget|@王芳 确认|true", "/Forget@Wang Fang": "forget|@Wang Fang|true",
		"/forget@bob": "forget|@bob|true", "/忘记我们的约定": "忘记我们的约定||true", "/忘记 我们的约定": "forget|我们的约定|true",
		"/记忆忘记3": "memory|忘记 3|true", "/记忆2": "memory|2|true", "/记忆＃３": "memory|＃３|true", "/记忆里有什么": "记忆里有什么||true",
		"/导出我": "export|我|true", "/导出我2": "export|我 2|true",
		"/forgetme": "forget|me|true", "/ForgetMe yes": "forget|me yes|true", "/forgetlast": "forget|last|true",
		"/memory2": "memory|2|true", "/memoryforget3": "memory|forget 3|true", "/exportme": "export|me|true",
		"/compactundo": "compact|undo|true", "/压缩撤销": "compact|撤销|true", "/撤销压缩": "compact|撤销|true", "/压缩日志": "compact|日志|true",
		"/压缩策略turns": "compact|策略 turns|true", "/压缩 设置页面的讨论": "compact|设置页面的讨论|true", "/help@Ebb": "help||true", "/状态@Ebb": "status||true",
		"/dance": "dance||true", "/跳舞 吧": "跳舞|吧|true", "/forgetful": "forgetful||true", "/memories": "memories||true",
		"/etc/hosts": "etc/hosts||false", "/etc/hosts 里有什么": "etc/hosts|里有什么|false", "/5 是多少": "5|是多少|false",
		"//": "/||false", "/": "||false", "/记忆里有一条关于发布窗口的内容说的是星期五还是星期四呢请帮我看看": "记忆里有一条关于发布窗口的内容说的是星期五还是星期四呢请帮我看看||false",
		"/compact the  numbers": "compact|the  numbers|true", " /STATUS ": "status||true", "/状态": "status||true", "/压缩 重点": "compact|重点|true",
		"compact": "||false", "/etc/passwd": "etc/passwd||false", "/help\nme": "help|me|true", "/compact\t数字": "compact|数字|true",
		"/提醒我明天3点开会": "remind|我明天3点开会|true", "/提醒大家每周五9点交周报": "remind|大家每周五9点交周报|true",
		"/提醒下午3点开会": "remind|下午3点开会|true", "/提醒夜里11点睡觉": "remind|夜里11点睡觉|true", "/提醒工作日9点打卡": "remind|工作日9点打卡|true",
		"/clear": "new||true", "/reset": "new||true", "/清空": "new||true", "/重置": "new||true", "/start": "help||true", "/ help": "help||true",
		"／ 提醒 列表": "remind|列表|true", "/ 2": "||false", "/ or": "||false", "start": "||false", "菜单": "||false",
		"/帮助 @Ebb": "help||true", "/help ＠Ebb": "help||true", "/help remind @Ebb": "help|remind|true", "帮助 @Ebb": "help||true", "/compact @Ebb": "compact||true",
		"/压缩 策略 turns @Ebb": "compact|策略 turns|true", "/记忆 忘记 3 @Ebb": "memory|忘记 3|true", "/忘记我 @Ebb": "forget|我|true", "/导出我 2 @Ebb": "export|我 2|true",
		"/model main @Ebb": "model|main|true", "/提醒 @Ebb": "remind||true", "/remind change 3 tomorrow at 9 @Ebb": "remind|change 3 tomorrow at 9|true",
		"/forget #3 @Ebb": "forget|#3|true", "/忘记 @王芳 @Ebb": "forget|@王芳|true", "/forget @Wang Fang @Ebb": "forget|@Wang Fang|true", "/忘记 @王芳": "forget|@王芳|true",
		"/提醒 10分钟后 联系 @王芳": "remind|10分钟后 联系 @王芳|true", "/压缩 重点 @王芳": "compact|重点 @王芳|true", "/compact release dates @Ebb": "compact|release dates @Ebb|true",
		"/状态。": "status||true", "/状态?": "status||true", "/whoami？": "whoami||true", "/ｓｔａｔｕｓ": "status||true", "\u200b/状态\u200b": "status||true", "/\ufeff状态": "status||true",
		"/提醒：10分钟后 喝水": "remind|10分钟后 喝水|true", "/提醒,明天9点 开会": "remind|明天9点 开会|true", "/compact: dates": "compact|dates|true", "/压缩一下": "compact||true",
		"/?": "help||true", "/？": "help||true", "/h": "help||true", "/命令": "help||true", "/开始": "help||true", "/新会话": "new||true", "/清空上下文": "new||true", "/restart": "new||true",
		"/停一下": "stop||true", "/cancel": "stop||true", "/取消": "stop||true", "/额度": "usage||true", "/换模型 main": "model|main|true", "/记忆列表": "memory||true", "/reminders": "remind||true",
		"/状态\u2005@Ebb\u2005": "status||true", "/api:v1 是什么": "api:v1|是什么|false", "/状态?怎么看": "状态?怎么看||false",
		"帮助": "help||true", "help": "help||true", "Help?": "help||true", "help me": "||false", "需要帮助": "||false",
	} {
		c := Commands.Parse(text)
		if got := fmt.Sprintf("%s|%s|%v", c.Name, c.Rest, Commands.IsCommand(text)); got != wanted {
			t.Errorf("%q is parsed as %q, want %q", text, got, wanted)
		}
	}
}

// An unknown name that is one edit away from a name of the table is answered with a name of the table, and a known one
// never is.
func TestNearNamesAreSuggested(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range Commands {
		for name := range Commands[i].written() {
			if len([]rune(name.text)) > 1 {
				names = append(names, name.text)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		name := []rune(rapid.SampledFrom(names).Draw(t, "name"))
		letter := rapid.SampledFrom([]rune("abcxyz忘记新的")).Draw(t, "letter")
		at := rapid.IntRange(0, len(name)-1).Draw(t, "at")
		switch rapid.IntRange(0, 3).Draw(t, "edit") {
		case 0:
			name[at] = letter
		case 1:
			name = slices.Insert(name, at, letter)
		case 2:
			name = slices.Delete(name, at, at+1)
		case 3:
			at = min(at, len(name)-2) // the last letter has no neighbor
			name[at], name[at+1] = name[at+1], name[at]
		}
		written := "/" + string(name)
		newFirst := func(edited []rune) bool { // the first of two Chinese characters is new
			return at == 0 && (len(edited) == 2 || len(edited) == 1) && edited[len(edited)-1] > 0x2e80
		}
		near := Commands.Near(string(name))
		switch known := Commands.Parse(written).Command != nil; {
		case !known && near == "" && !newFirst(name):
			t.Fatalf("%s is near no name", written)
		case near != "" && Commands.Parse("/"+near).Use == nil && Commands.Parse("/"+near).Command == nil:
			t.Fatalf("/%s is suggested, which is no command", near)
		}
	})
	for name, want := range map[string]string{
		"statsu": "status", "staus": "status", "状况": "状态", "压宿": "压缩", "forgetm": "forget", "forgetm3": "forget me", "compactlogs": "compact log", "忘记你": "忘记", "停x": "停止", "x": "",
		"undo": "compact undo", "Undo": "compact undo", "撤销": "压缩 撤销", "promote": "memory promote", "查看": "记忆 查看", "delete": "", "me": "", "我": "",
		"退出": "", "搜索": "", "dance": "", "跳舞": "", "": "", "记忆里有什么": "", strings.Repeat("长", 1000): "",
	} {
		if got := Commands.Near(name); got != want {
			t.Errorf("/%s is near %q, want %q", name, got, want)
		}
	}
}

// A mistake of one letter in a word of /compact is no focus.
func TestNearWordsOfCompact(t *testing.T) {
	t.Parallel()
	compact := Commands.Parse("/compact").Command
	for text, want := range map[string]string{
		"logs": "log", "lgo": "log", "ndo": "undo", "undoo": "undo", "policies": "", "polcy": "policy", "sets": "set", "log": "", "LOGS": "log",
		"logs of friday": "", "发布": "", "重启": "", "": "",
	} {
		if got := compact.Near(text); got != want {
			t.Errorf("%q is near %q, want %q", text, got, want)
		}
	}
}

// Help lists the uses that the asker has the right to, each in the language of the question, and no other ones.
func TestHelpListsWhatTheAskerMayDo(t *testing.T) {
	t.Parallel()
	h := New(&parts.Shared{Current: reload.New(reload.Values{Admins: []sessions.UserID{"root"}})}, &view.Builder{}, Stores{}, nil, nil, Options{})
	for _, c := range []struct {
		who     sessions.UserID
		place   sessions.ConversationType
		admin   bool // by the platform's mark
		allowed func(Right) bool
	}{
		{"alice", sessions.Group, false, func(w Right) bool { return w == Anyone }},
		{"alice", sessions.Private, false, func(w Right) bool { return w < Admin }},
		{"lead", sessions.Group, true, func(w Right) bool { return w < Installation }},
		{"lead", sessions.Private, true, func(w Right) bool { return w < Admin }},
		{"lead", sessions.Unknown, true, func(w Right) bool { return w == Anyone }},
		{"root", sessions.Group, false, func(Right) bool { return true }},
		{"root", sessions.Private, false, func(Right) bool { return true }},
	} {
		for _, lang := range []string{"zh", "en"} {
			x := &view.CommandTurn{Lang: lang, Asked: sessions.Event{SenderID: c.who, Message: &sessions.Message{StaffID: c.who, Admin: c.admin, ConversationType: c.place}}}
			got := helpOf(&h.env).show(t.Context(), x, Call{Arg: "all"})
			for _, command := range Commands {
				for _, u := range command.Uses {
					line := "- `" + u.Usage.In(lang) + "` "
					if strings.Contains(got, line) != c.allowed(u.Who) {
						t.Errorf("%s in a %s chat, %s: %q in the help: want %v\n%s", c.who, c.place, lang, line, c.allowed(u.Who), got)
					}
				}
			}
			if noted := strings.Contains(got, wording.Say(wording.HelpMarked, lang)); noted != strings.Contains(got, "` * ") {
				t.Errorf("%s in a %s chat: the note on marked lines: got %v\n%s", c.who, c.place, noted, got)
			}
		}
	}
}

// The first help has at most eight lines, which begin with what members want, and no line of a command that the asker may not use. Each
// command is in one topic, and help lists a topic by its names.
func TestHelpBeginsWithWhatMembersWant(t *testing.T) {
	t.Parallel()
	h := New(&parts.Shared{Current: reload.New(reload.Values{Admins: []sessions.UserID{"root"}, CommandRights: map[string]string{"remind": "admin"}})}, &view.Builder{}, Stores{}, nil, nil, Options{})
	help := func(who sessions.UserID, place sessions.ConversationType, text, lang string) string {
		c := Commands.Parse(text)
		x := &view.CommandTurn{Lang: lang, Asked: sessions.Event{SenderID: who, Message: &sessions.Message{StaffID: who, ConversationType: place}}}
		return c.Use.Run(&h.env, t.Context(), x, c)
	}
	for _, place := range []sessions.ConversationType{sessions.Group, sessions.Private} {
		for _, who := range []sessions.UserID{"alice", "root"} {
			for _, text := range []string{"/help", "/帮助", "/start", "/ help"} {
				lang := wording.LanguageOf(text, "")
				got := help(who, place, text, lang)
				if lines := strings.Count(got, "\n") + 1; lines > 8 {
					t.Errorf("%s has %d lines for %s:\n%s", text, lines, who, got)
				}
				stop := strings.Index(got, map[string]string{"en": "`/stop`", "zh": "`/停止`"}[lang])
				forget := strings.Index(got, map[string]string{"en": "`/forget me`", "zh": "`/忘记我`"}[lang])
				if stop < 0 || forget < stop || strings.Contains(got, "compact undo") {
					t.Errorf("%s is answered %s", text, got)
				}
				reminds := strings.Contains(got, map[string]string{"en": "`/remind list`", "zh": "`/提醒 列表`"}[lang])
				renews := strings.Contains(got, map[string]string{"en": "`/new`", "zh": "`/新对话`"}[lang])
				if reminds != (who == "root") || renews != (who == "root" || place == sessions.Private) {
					t.Errorf("%s for %s in a %v chat: %s", text, who, place, got)
				}
			}
		}
	}
	listed := map[string]int{}
	for _, topic := range topics {
		for _, name := range topic.Commands {
			listed[name]++
			c := Commands.Parse("/" + name).Command
			if got := help("root", sessions.Private, "/help "+topic.EN, "en"); !strings.Contains(got, "`"+c.Uses[len(c.Uses)-1].Usage.In("en")+"`") {
				t.Errorf("/help %s does not list /%s:\n%s", topic.EN, name, got)
			}
			if got := help("root", sessions.Private, "/帮助 "+topic.ZH, "zh"); !strings.Contains(got, "`"+c.Uses[len(c.Uses)-1].Usage.In("zh")+"`") {
				t.Errorf("/帮助 %s does not list /%s:\n%s", topic.ZH, name, got)
			}
		}
		if overview := help("root", sessions.Private, "/help", "en"); !strings.Contains(overview, "`/help "+topic.EN+"`") {
			t.Errorf("the help does not name %s", topic.EN)
		}
	}
	for i := range Commands {
		if name := Commands[i].EN[0]; listed[name] != 1 {
			t.Errorf("/%s is in %d topics", name, listed[name])
		}
	}
}

// Help on one command shows its uses with examples and marks those of administrators. A mistyped name is answered with a
// near one.
func TestHelpOnOneCommand(t *testing.T) {
	t.Parallel()
	h := New(&parts.Shared{Current: reload.New(reload.Values{})}, &view.Builder{}, Stores{}, nil, nil, Options{})
	for asked, wanted := range map[string][]string{
		"/help remind": {
			"Usage of `/remind`:\n\n- `/remind` the reminders here\n  for example `/remind list`\n- `/remind delete N` delete one of them\n  for example `/remind delete 3`\n",
			"  for example `/remind every Friday at 9 send the report`\n",
		},
		"/help /remind delete": {"Usage of `/remind`:", "`/remind delete 3`"},
		"/help 提醒":             {"Usage of `/remind`:"},
		"/帮助 提醒":               {"`/提醒` 的用法：\n\n- `/提醒` 这里的提醒（`/remind`）\n", "  例如 `/提醒 每周五9点 交周报`\n"},
		"/帮助 ／压缩撤销":            {"`/压缩` 的用法（带 * 的在群里限管理员）：\n\n- `/压缩 [键=值] [重点]` * 现在就压缩", "  例如 `/压缩 策略 turns`\n"},
		"/help compact":        {"Usage of `/compact` (* in groups: administrators):", "- `/compact undo` * undo the last compaction\n"},
		"/help remnd":          {"Did you mean `/help remind`?"},
		"/帮助 状况":               {"是不是想看 `/帮助 状态`？"},
		"/help dance":          {"There is no such command"},
		"/帮助 怎么设提醒":            {"没有这个命令，发 `/帮助 全部` 看全部"},
		"/help help":           {"Usage of `/help`:", "for example `/help remind`"},
	} {
		c, lang := Commands.Parse(asked), "zh"
		if strings.HasPrefix(asked, "/help") {
			lang = "en"
		}
		x := &view.CommandTurn{Lang: lang, Asked: sessions.Event{SenderID: "alice", Message: &sessions.Message{StaffID: "alice", ConversationType: sessions.Group}}}
		got := c.Use.Run(&h.env, t.Context(), x, c)
		for _, words := range wanted {
			if !strings.Contains(got, words) {
				t.Errorf("%s is answered %q, want %q in it", asked, got, words)
			}
		}
		if strings.Contains(got, "/status") {
			t.Errorf("%s lists other commands: %q", asked, got)
		}
	}
}
