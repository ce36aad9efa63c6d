package view

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"

	"ebb/bot/parts"
	"ebb/bot/reload"
	"ebb/compaction"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// Choices are the settings and models that files and conversations choose.
type Choices struct {
	shared   *parts.Shared
	resolved resolved
}

// Settings returns a session's own settings of compactions, on top of its group's, on top of the common ones.
func (c Choices) Settings(s sessions.Session) compaction.Settings {
	set := c.shared.Current.For(s.Key)
	file, ok := set.Compactions[s.ConversationID]
	if !ok {
		file = set.Compaction
	}
	if s.Settings == "" || set.Own == nil {
		return file
	}
	own, err := c.resolved.get(set, s.ConversationID, s.Settings)
	if err != nil {
		return file // the file has changed since the command; /status says so
	}
	return own
}

// Resolve caches [reload.Own], for those of the settings that are about compactions.
func (c Choices) Resolve(id sessions.ConversationID, settings string) (compaction.Settings, error) {
	return c.resolved.get(c.shared.Current.Get(), id, settings)
}

// ModelKey is the model's key in a conversation's own settings.
const ModelKey = "model"

// Model is empty for the default. A choice of the session that the file lacks gives way to the group's model.
func (c Choices) Model(s sessions.Session) string {
	name := chosen(s.Settings)
	file := c.shared.Current.For(s.Key)
	if !slices.ContainsFunc(file.Models, func(m llm.ModelChoice) bool { return m.Name == name }) {
		g, _ := file.Group(s.ConversationID)
		return g.Model
	}
	return name
}

// Reads returns the model whose requests show the session.
func (c Choices) Reads(s sessions.Session) sessions.ModelID { return c.ModelID(s.Key, c.Model(s)) }

// ModelID identifies a configured model of a session; an empty name is the default's.
func (c Choices) ModelID(key sessions.Key, name string) sessions.ModelID {
	for _, m := range c.shared.Current.For(key).Models {
		if name == "" || m.Name == name {
			return cmp.Or(m.ID, sessions.ModelID(m.Name))
		}
	}
	return sessions.ModelID(cmp.Or(name, "default"))
}

// Price returns zeros for an unknown model.
func (c Choices) Price(model string) llm.Price {
	for _, m := range c.shared.Current.Get().Models {
		if m.Name == model {
			return m.Price
		}
	}
	return llm.Price{}
}

func chosen(settings string) string {
	if !strings.Contains(settings, `"`+ModelKey+`"`) {
		return ""
	}
	var own struct {
		Model string `json:"model"`
	}
	_ = json.Unmarshal([]byte(settings), &own) // the storage holds only objects
	return own.Model
}

func withoutModel(settings string) string {
	all := map[string]json.RawMessage{}
	if chosen(settings) == "" || json.Unmarshal([]byte(settings), &all) != nil {
		return settings
	}
	delete(all, ModelKey)
	text, _ := json.Marshal(all) // it was JSON before
	return string(text)
}

type resolved struct {
	known *lru.Cache[ownSettings, resolution]
}

type ownSettings struct {
	file     *reload.Values
	id       sessions.ConversationID
	settings string
}

type resolution struct {
	set compaction.Settings
	err error
}

const maxResolved = 1000

func newResolved() resolved {
	known, _ := lru.New[ownSettings, resolution](maxResolved) // it fails only without a size
	return resolved{known}
}

func (r resolved) get(file *reload.Values, id sessions.ConversationID, settings string) (compaction.Settings, error) {
	key := ownSettings{file, id, settings}
	one, ok := r.known.Get(key)
	if !ok {
		one.set, one.err = file.Own(id, withoutModel(settings))
		r.known.Add(key, one)
	}
	return one.set, one.err
}

// Spent reports whether upkeep has used the session's daily tokens. Until midnight (UTC) only answers call a model, and
// the view omits events that exceed the window.
func Spent(set compaction.Settings, s sessions.Session) bool {
	return set.DailyTokens > 0 && s.SpentToday >= set.DailyTokens
}
