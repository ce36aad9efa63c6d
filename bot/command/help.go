package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ebb/bot/view"
	"ebb/bot/wording"
)

// topic is a part of the help: commands of one purpose.
type topic struct {
	ZH, EN   string
	Commands []string // by their English names
}

// topics order the commands for people. Each command has one.
var topics = []topic{
	{"提醒", "reminders", []string{"remind"}},
	{"记忆", "memory", []string{"memory", "keep", "files", "forget", "export"}},
	{"对话", "conversation", []string{"new", stopName, "status", "usage", "model", "scope", "whoami", "help"}},
	{"工具", "tools", []string{approveName, rejectName}},
	{"压缩", "compaction", []string{"compact"}},
}

// allTopics is the name under which all commands are listed.
var allTopics = []string{"全部", "all"}

// beginnings are the first lines of the help, in the order of what people want. A line is left out where the asker may not use its
// command.
var beginnings = []struct {
	Command string
	Line    wording.Phrase
}{
	{stopName, wording.HelpStop}, {"remind", wording.HelpRemind}, {"memory", wording.HelpMemory}, {"forget", wording.HelpForget}, {"new", wording.HelpNew},
}

// languageNames are the words for a language that people put behind the name of the help.
var languageNames = map[string]string{"en": "en", "english": "en", "英文": "en", "英语": "en", "zh": "zh", "chinese": "zh", "中文": "zh", "汉语": "zh"}

// helpCommand is /help.
type helpCommand struct {
	table Table
	roles roles
}

func helpOf(e *env) helpCommand { return helpCommand{e.table, e.roles()} }

// show says how to begin, lists the commands of a topic that the asker may use, or describes the one command that is named.
func (h helpCommand) show(_ context.Context, t *view.CommandTurn, c Call) string {
	name := strings.ToLower(trimMarks(c.Arg))
	lang := languageNames[strings.TrimPrefix(name, "in ")]
	switch {
	case lang != "":
		t.Lang = lang
		return h.overview(t)
	case name == "":
		return h.overview(t)
	case slices.Contains(allTopics, name):
		return h.listed(t, func(*Command) bool { return true })
	default:
		for _, topic := range topics {
			// A name of one command alone describes that command, with examples.
			if name == topic.EN || name == topic.ZH {
				if len(topic.Commands) == 1 {
					return h.helpOn(t, topic.Commands[0])
				}
				return h.listed(t, func(c *Command) bool { return slices.Contains(topic.Commands, c.EN[0]) })
			}
		}
		return h.helpOn(t, c.Arg)
	}
}

// overview is the first help: what a member wants, and the topics of the rest.
func (h helpCommand) overview(t *view.CommandTurn) string {
	var out strings.Builder
	out.WriteString(wording.Say(wording.Help, t.Lang))
	for _, line := range beginnings {
		c := h.table.Parse("/" + line.Command).Command
		if slices.ContainsFunc(c.Uses, func(u Use) bool { return h.roles.may(t.Asked, h.roles.right(t.Lease.Key, c, &u)) }) {
			out.WriteString(wording.Say(line.Line, t.Lang))
		}
	}
	return out.String() + wording.Say(wording.HelpTopics, t.Lang)
}

// listed lists the uses of commands that the asker has the right to.
func (h helpCommand) listed(t *view.CommandTurn, wanted func(*Command) bool) string {
	var out strings.Builder
	note := ""
	for i := range h.table {
		c := &h.table[i]
		if !wanted(c) {
			continue
		}
		for _, u := range c.Uses {
			who := h.roles.right(t.Lease.Key, c, &u)
			if !h.roles.may(t.Asked, who) {
				continue
			}
			if who != Anyone {
				note = wording.Say(wording.HelpMarked, t.Lang)
			}
			out.WriteString(u.helpLine(who, t.Lang))
		}
	}
	return wording.Say(wording.HelpListed, t.Lang, note) + out.String()
}

// helpOn describes a command with all its uses: a person who names it reads who may use them. The name may have a slash,
// and words behind it.
func (h helpCommand) helpOn(t *view.CommandTurn, name string) string {
	c := h.table.Parse("/" + strings.TrimLeft(name, "/／"))
	if c.Command == nil && c.Rest != "" { // a sentence
		return h.overview(t)
	}
	if c.Command == nil {
		if near := h.table.Near(c.Name); near != "" {
			return wording.Say(wording.HelpNear, t.Lang, near)
		}
		return wording.Say(wording.NoCommand, t.Lang)
	}
	var out strings.Builder
	note := ""
	for _, u := range c.Command.Uses {
		who := h.roles.right(t.Lease.Key, c.Command, &u)
		if who != Anyone {
			note = wording.Say(wording.HelpMarked, t.Lang)
		}
		out.WriteString(u.helpLine(who, t.Lang))
		if example := u.Example.In(t.Lang); example != "" {
			out.WriteString(wording.Say(wording.HelpExample, t.Lang, example))
		}
	}
	title := c.Command.EN[0]
	if t.Lang != "en" {
		title = c.Command.ZH[0]
	}
	return wording.Say(wording.HelpOn, t.Lang, title, note) + out.String()
}

func (u *Use) helpLine(who Right, lang string) string {
	mark, other := "", ""
	if who != Anyone {
		mark = " *"
	}
	if lang != "en" {
		other = fmt.Sprintf("（`%s`）", u.Usage.In("en"))
	}
	return fmt.Sprintf("- `%s`%s %s%s\n", u.Usage.In(lang), mark, u.Does.In(lang), other)
}
