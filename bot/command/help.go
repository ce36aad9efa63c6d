package command

import (
	"context"
	"fmt"
	"strings"

	"ebb/bot/view"
	"ebb/bot/wording"
)

func (h *Handler) help(_ context.Context, t *view.Exchange, _ Call) string {
	var out strings.Builder
	note := ""
	for _, c := range h.commands {
		for _, u := range c.Uses {
			who := h.right(&c, &u)
			if !h.may(t.Asked[0], who) {
				continue
			}
			mark := ""
			if who != Anyone {
				mark, note = " *", wording.Say(wording.HelpMarked, t.Lang)
			}
			fmt.Fprintf(&out, "- `%s`%s %s", u.Usage.In(t.Lang), mark, u.Does.In(t.Lang))
			if t.Lang != "en" {
				fmt.Fprintf(&out, "（`%s`）", u.Usage.In("en"))
			}
			out.WriteByte('\n')
		}
	}
	return wording.Say(wording.Help, t.Lang, note) + out.String()
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
