package command

import (
	"context"
	"fmt"
	"strings"

	"ebb/bot/view"
	"ebb/bot/wording"
)

// help lists what the asker may use, or describes the one command that is named.
func (h *Handler) help(_ context.Context, t *view.Exchange, c Call) string {
	if c.Arg != "" {
		return h.helpOn(t, c.Arg)
	}
	var out strings.Builder
	note := ""
	for _, c := range h.commands {
		for _, u := range c.Uses {
			who := h.right(&c, &u)
			if !h.may(t.Asked[0], who) {
				continue
			}
			if who != Anyone {
				note = wording.Say(wording.HelpMarked, t.Lang)
			}
			out.WriteString(u.helpLine(who, t.Lang))
		}
	}
	return wording.Say(wording.Help, t.Lang, note) + out.String()
}

// helpOn describes a command with all its uses: a person who names it reads who may use them. The name may have a slash,
// and words behind it.
func (h *Handler) helpOn(t *view.Exchange, name string) string {
	c := h.commands.Parse("/" + strings.TrimLeft(name, "/／"))
	if c.Command == nil {
		if near := h.commands.Near(c.Name); near != "" {
			return wording.Say(wording.HelpNear, t.Lang, near)
		}
		return wording.Say(wording.NoCommand, t.Lang)
	}
	var out strings.Builder
	note := ""
	for _, u := range c.Command.Uses {
		who := h.right(c.Command, &u)
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

func (c *Command) usage(lang string) string {
	parts := make([]string, len(c.Uses))
	for i, u := range c.Uses {
		parts[i] = "`" + u.Usage.In(lang) + "`"
		if u.Who == Admin {
			parts[i] += wording.Say(wording.UsageAdmins, lang)
		}
	}
	return wording.Say(wording.Usage, lang, strings.Join(parts, wording.Say(wording.Comma, lang)))
}
