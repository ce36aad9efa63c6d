package command

import (
	"slices"

	"ebb/sessions"
)

// RightWords are the words of rights in a configuration.
var RightWords = map[string]Right{"anyone": Anyone, "owner": Owner, "admin": Admin}

// EnglishName takes a name in either language; empty for no command.
func (t Table) EnglishName(name string) string {
	for _, c := range t {
		if slices.Contains(c.EN, name) || slices.Contains(c.ZH, name) {
			return c.EN[0]
		}
	}
	return ""
}

// EnglishNames lists the first English name of each command.
func (t Table) EnglishNames() []string {
	names := make([]string, len(t))
	for i, c := range t {
		names[i] = c.EN[0]
	}
	return names
}

// May reports whether a message's sender has the right to a command, by its English name. Uses for administrators alone are not
// considered.
func (h *Handler) May(e sessions.Event, command string) bool {
	for i := range h.commands {
		if c := &h.commands[i]; c.EN[0] == command {
			return h.may(e, h.right(c, &Use{}))
		}
	}
	return false
}

// right lets a configured right replace the table's. A use for administrators alone stays theirs: it affects other
// people's data.
func (h *Handler) right(c *Command, u *Use) Right {
	if word, ok := h.shared.Current.Get().CommandRights[c.EN[0]]; ok && u.Who < Admin {
		return RightWords[word]
	}
	return u.Who
}
