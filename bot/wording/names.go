package wording

import (
	"regexp"
	"strings"
	"unicode"
)

// commandName is a command's English name, with the argument that the written name includes, if any.
type commandName struct{ command, first string }

// commandNames maps all names of commands, Chinese and English.
var commandNames = map[string]commandName{
	"status": {command: "status"}, "状态": {command: "status"},
	"compact": {command: "compact"}, "压缩": {command: "compact"},
	"压缩撤销": {"compact", "undo"}, "撤销压缩": {"compact", "undo"},
	"压缩记录": {"compact", "log"}, "压缩日志": {"compact", "log"},
	"memory": {command: "memory"}, "记忆": {command: "memory"},
	"forget": {command: "forget"}, "忘记": {command: "forget"}, "忘记我": {"forget", "me"},
	"export": {command: "export"}, "导出": {command: "export"}, "导出我": {"export", "me"},
	"new": {command: "new"}, "新对话": {command: "new"},
	"help": {command: "help"}, "帮助": {command: "help"},
}

// isName reports whether a command has this name.
func isName(name string) bool {
	_, ok := commandNames[name]
	return ok
}

// Canonical returns the English name of a command and its arguments; ok is false for an unknown name.
func Canonical(name, rest string) (command, arguments string, ok bool) {
	c, ok := commandNames[name]
	return c.command, strings.TrimSpace(c.first + " " + rest), ok
}

// ParseCommand splits "/compact the numbers" into its name and the rest. Chinese keyboards write ／ for the slash, and
// no blank: "/忘记我确认" is 忘记我 and 确认.
func ParseCommand(text string) (name, rest string) {
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
	if plain, to, ok := strings.Cut(name, "@"); ok && to != "" && isName(plain) && !strings.HasPrefix(plain, "forget") && plain != "忘记" {
		name, text = plain, plain // the form of other messengers: /help@Ebb
	}
	if isName(name) {
		return name, rest
	}
	if m := gluedRE.FindStringSubmatch(name); m != nil {
		for i := 1; i < len(m); i += 2 {
			if m[i] != "" {
				// in original case, because it may hold a person's name
				return m[i], strings.TrimSpace(text[min(len(m[i]), len(text)):] + " " + rest)
			}
		}
	}
	return name, rest
}

// gluedRE matches commands without a blank behind their name. The text that may follow each is fixed, because a longer
// word is another one.
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

// unknownRE matches the name of an unknown command. A path has a second slash, and a calculation no letter.
var unknownRE = regexp.MustCompile(`^[\p{Han}a-z][\p{Han}a-z0-9_-]{0,23}$`)

// IsCommand reports whether a text is a command or has the form of one. No model is asked about such a text.
func IsCommand(text string) bool {
	name, _ := ParseCommand(text)
	return isName(name) || unknownRE.MatchString(name)
}

// IsKnown reports whether a text is a command of the table.
func IsKnown(text string) bool {
	name, _ := ParseCommand(text)
	return isName(name)
}
