package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"ebb/bot/access"
	"ebb/bot/command"
	"ebb/bot/config/strict"
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

// check refuses names where ids belong, since a rule for a name matches no one. Two names of one command are refused: a reader could
// not see which rule is in force.
func (a *AccessConfig) check(k *strict.Source, at string) {
	for _, list := range []struct {
		key   string
		ids   []string
		check func(path, id string)
	}{
		{"groups", a.Groups, func(path, id string) { wantConversation(k, path, id) }}, {"people", a.People, func(path, id string) { wantPerson(k, path, id) }},
		{"deny", a.Deny, func(path, id string) { wantID(k, path, id, staffID+", or the id of a conversation") }},
	} {
		for i, id := range list.ids {
			path := fmt.Sprintf("%s.%s[%d]", at, list.key, i)
			if id != access.Everyone {
				list.check(path, id)
			}
		}
	}
	first := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(a.Commands)) {
		path := strict.Join(at+".commands", strict.KeyText(name))
		one := command.Commands.EnglishName(name)
		if one == "" {
			near := strict.Nearest(name, commandNames())
			if near == "" {
				k.Fail(path, "no such command, want one of %s", strict.KeyList(commandNames()))
			} else {
				k.Fail(path, "no such command, did you mean %q?", near)
			}
			continue
		}
		if other, twice := first[one]; twice {
			k.Fail(path, "the same command as %s, want one of the two", strconv.Quote(other))
		}
		first[one] = name
		k.OneOf(path, a.Commands[name], []string{"anyone", "owner", "admin"})
	}
}

// warn records lists that say something else than they look like.
func (a *AccessConfig) warn(src *strict.Source, at string, admins []string) {
	alone := "agent.admins alone"
	if len(admins) == 0 {
		alone = "no one, as agent.admins is empty too"
	}
	for _, list := range []struct {
		path string
		ids  []string
		left string
	}{
		{at + ".groups", a.Groups, "serves no group, private chats alone"}, {at + ".people", a.People, "serves " + alone},
	} {
		if len(list.ids) == 0 {
			src.Warn(list.path, `an empty list %s; ["*"] serves all`, list.left)
		}
		for i, id := range list.ids {
			switch path := fmt.Sprintf("%s[%d]", list.path, i); {
			case id != access.Everyone && slices.Contains(list.ids, access.Everyone):
				src.Warn(path, `does nothing beside "*", which serves all`)
			case id != access.Everyone && slices.Contains(a.Deny, id):
				src.Warn(path, "does nothing: %s.deny has the id too, and takes precedence", at)
			}
		}
	}
	for i, id := range a.Deny {
		if id == access.Everyone {
			src.Warn(fmt.Sprintf("%s.deny[%d]", at, i), `"*" serves %s`, alone)
		}
		if slices.Contains(admins, id) {
			src.Warn(fmt.Sprintf("%s.deny[%d]", at, i), "does nothing: the id is one of agent.admins, who are always served")
		}
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
