package bot

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"ebb/sessions"
)

// commandNamed is the slash command of a name, in Chinese or English; nil where there is none.
func commandNamed(name string) func(*Bot, context.Context, *turn, string) string {
	switch name {
	case "status", "状态":
		return (*Bot).status
	case "compact", "压缩":
		return (*Bot).compactCommand
	case "压缩撤销", "撤销压缩":
		return func(b *Bot, ctx context.Context, t *turn, rest string) string {
			return b.compactCommand(ctx, t, "undo "+rest)
		}
	case "压缩记录", "压缩日志":
		return func(b *Bot, ctx context.Context, t *turn, rest string) string {
			return b.compactCommand(ctx, t, "log "+rest)
		}
	case "memory", "记忆":
		return (*Bot).memoryCommand
	case "forget", "忘记":
		return (*Bot).forgetCommand
	case "忘记我":
		return func(b *Bot, ctx context.Context, t *turn, rest string) string {
			return b.forgetCommand(ctx, t, "me "+rest)
		}
	case "export", "导出":
		return (*Bot).exportCommand
	case "导出我":
		return func(b *Bot, ctx context.Context, t *turn, rest string) string {
			return b.exportCommand(ctx, t, strings.TrimSpace("me "+rest))
		}
	case "new", "新对话":
		return (*Bot).renew
	case "help", "帮助":
		return (*Bot).help
	}
	return nil
}

// parseCommand splits "/compact the numbers" into its name and the rest. Chinese keyboards write ／ for the slash, and
// no blank: "/忘记我确认" is 忘记我 and 确认.
func parseCommand(text string) (name, rest string) {
	text = strings.TrimSpace(text)
	if bare := strings.ToLower(strings.Trim(text, "？?！!。 ")); bare == "帮助" || bare == "help" {
		return bare, ""
	}
	if wide, ok := strings.CutPrefix(text, "／"); ok {
		text = "/" + wide
	}
	text, ok := strings.CutPrefix(text, "/")
	if !ok {
		return "", ""
	}
	if at := strings.IndexFunc(text, unicode.IsSpace); at >= 0 {
		text, rest = text[:at], text[at:]
	}
	name, rest = strings.ToLower(text), strings.TrimSpace(rest)
	if plain, to, ok := strings.Cut(name, "@"); ok && to != "" && commandNamed(plain) != nil && !strings.HasPrefix(plain, "forget") && plain != "忘记" {
		name, text = plain, plain // as other messengers write it: /help@Ebb
	}
	if commandNamed(name) != nil {
		return name, rest
	}
	if m := gluedRE.FindStringSubmatch(name); m != nil {
		for i := 1; i < len(m); i += 2 {
			if m[i] != "" {
				// As it was written: a name of somebody may be in it.
				return m[i], strings.TrimSpace(text[min(len(m[i]), len(text)):] + " " + rest)
			}
		}
	}
	return name, rest
}

// gluedRE finds commands that are written without a blank behind their name. What may follow each is fixed, for a
// longer word is another one.
var gluedRE = regexp.MustCompile(`^(?:` +
	`(忘记我)((?:确认|确定|是|取消|不).{0,12})` +
	`|(忘记)((?:我|上一条|刚才|[@＠#＃]).*)` +
	`|(记忆)((?:忘记|删除|团队|查看|显示|[#＃]?[0-9０-９]).*)` +
	`|(导出)(我.?)` +
	`|(压缩)(撤销|记录|日志|(?:策略|设置|重点).*)` +
	`|(forget)(me|last|[@＠#＃].*)` +
	`|(memory)((?:forget|promote|show)?[#＃]?[0-9０-９]+|forget|promote|show)` +
	`|(export)(me)` +
	`|(compact)(undo|log)` +
	`)$`)

// unknownRE finds the name of what is written like a command and is none. A path has a second slash, and a sum no letter.
var unknownRE = regexp.MustCompile(`^[\p{Han}a-z][\p{Han}a-z0-9_-]{0,23}$`)

// isCommand reports whether a text is a command, or looks like one: that is nothing to ask a model.
func isCommand(text string) bool {
	name, _ := parseCommand(text)
	return commandNamed(name) != nil || unknownRE.MatchString(name)
}

// isKnown reports whether a text is a command that there is: what else stands behind a slash are its sender's own words.
func isKnown(text string) bool {
	name, _ := parseCommand(text)
	return commandNamed(name) != nil
}

// command runs the turn's command and returns what to tell the conversation.
func (b *Bot) command(ctx context.Context, t *turn) string {
	name, rest := parseCommand(b.ownWords(t.asked[0]))
	run := commandNamed(name)
	if run == nil {
		return say(sayNoCommand, t.lang)
	}
	return run(b, ctx, t, rest)
}

func (b *Bot) help(_ context.Context, t *turn, _ string) string { return say(sayHelp, t.lang) }

// mayManage reports whether the sender of a message may change what the bot sees of a conversation: anyone in a private
// chat, administrators in a group. Who has no staff id is a stranger to the organisation.
func (b *Bot) mayManage(e sessions.Event) bool {
	return e.Message != nil && (e.Message.ConversationType == sessions.Private || b.isAdmin(e))
}

// isAdmin reports whether the sender of a message is an administrator, wherever they write.
func (b *Bot) isAdmin(e sessions.Event) bool {
	m := e.Message
	return m != nil && m.StaffID != "" && (m.Admin || slices.Contains(b.cfg.Admins, m.StaffID))
}

// thousands writes 64000 as 64,000.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
