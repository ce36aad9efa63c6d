package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"ebb/bot/access"
	"ebb/bot/command"
	"ebb/sessions"
)

// AccessConfig says who is served, and the rights of commands.
type AccessConfig struct {
	// Groups are conversation ids; "*" stands for all.
	Groups []string `json:"groups"`
	// People are ids, for groups and private chats; "*" stands for all.
	People []string `json:"people"`
	// Deny are ids that are not served.
	Deny []string `json:"deny"`
	// External admits listed people outside the organization.
	External bool `json:"external"`
	// Commands have the right "anyone", "owner" or "admin".
	Commands map[string]string `json:"commands"`
}

func defaultAccess() AccessConfig {
	return AccessConfig{
		Groups: []string{access.Everyone}, People: []string{access.Everyone}, Deny: []string{}, External: true,
		Commands: map[string]string{},
	}
}

func (a *AccessConfig) check(k checker) {
	for _, list := range []struct {
		key string
		ids []string
		of  string
	}{{"groups", a.Groups, conversationID}, {"people", a.People, staffID}, {"deny", a.Deny, staffID}} {
		for i, id := range list.ids {
			k.id(fmt.Sprintf("access.%s[%d]", list.key, i), id, list.of+`, or "*" for all`)
		}
	}
	first := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(a.Commands)) {
		path := join("access.commands", keyText(name))
		one := command.Commands.EnglishName(name)
		if one == "" {
			near := nearest(name, commandNames())
			if near == "" {
				k.fail(path, "no such command, want one of %s", keyList(commandNames()))
			} else {
				k.fail(path, "no such command, did you mean %q?", near)
			}
			continue
		}
		if other, twice := first[one]; twice {
			k.fail(path, "the same command as %s, want one of the two", strconv.Quote(other))
		}
		first[one] = name
		k.oneOf(path, a.Commands[name], []string{"anyone", "owner", "admin"})
	}
}

func commandNames() []string { return command.Commands.EnglishNames() }

// Rules returns the rules of access.
func (a *AccessConfig) Rules(admins []sessions.UserID) *access.Rules {
	return &access.Rules{Groups: a.Groups, People: a.People, Deny: a.Deny, External: a.External, Admins: admins}
}

// Rights have English names as keys.
func (a *AccessConfig) Rights() map[string]string {
	rights := map[string]string{}
	for name, word := range a.Commands {
		rights[command.Commands.EnglishName(name)] = word
	}
	return rights
}
