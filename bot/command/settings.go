package command

import (
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/rs/zerolog"

	"ebb/bot/view"
	"ebb/bot/wording"
)

// settingNames maps short names of keys.
var settingNames = map[string]string{
	"a": "full_context_turns", "b": "cached_context_turns", "策略": "policy", "模式": "mode", "threshold": "auto_compact_threshold",
}

// fileOnly lists keys of costs and of the model, which only the file sets.
var fileOnly = []string{"context_window", "reserve_tokens", "daily_tokens"}

// plainSetting matches a possible key; 重点=端口 is a focus.
var plainSetting = regexp.MustCompile(`^(?:[a-zA-Z_]+|策略|模式)$`)

// defaultWords remove a setting.
var defaultWords = []string{"default", "默认"}

// withSetting returns a JSON object of settings with key set, or without it if value is a default word.
func withSetting(settings, key, value string) string {
	all := map[string]any{}
	if settings != "" {
		_ = json.Unmarshal([]byte(settings), &all) // the storage holds only objects
	}
	if slices.Contains(defaultWords, value) {
		delete(all, key)
	} else {
		all[key] = settingValue(value)
	}
	if len(all) == 0 {
		return ""
	}
	text, _ := json.Marshal(all) // strings, numbers and booleans can't fail
	return string(text)
}

// settingValue returns a number or boolean as JSON, and any other text as a string.
func settingValue(text string) any {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err == nil {
		switch v.(type) {
		case bool, float64:
			return json.RawMessage(text)
		}
	}
	return text
}

// settingKey returns the key of a word; own is false for keys that only the file sets.
func settingKey(word string) (key string, own bool) {
	key = strings.ToLower(word)
	if name, ok := settingNames[key]; ok {
		key = name
	}
	return key, !slices.Contains(fileOnly, key)
}

// settingsLine formats a session's own settings; empty for none.
func settingsLine(settings string) string {
	all := map[string]json.RawMessage{}
	if settings == "" || json.Unmarshal([]byte(settings), &all) != nil {
		return ""
	}
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		parts = append(parts, key+"="+strings.Trim(string(all[key]), `"`))
	}
	return strings.Join(parts, ", ")
}

// set is /compact set KEY VALUE and /compact policy NAME: it sets or removes one setting of the conversation.
func (h *Handler) set(ctx context.Context, t *view.Exchange, c Call) string {
	words := strings.Fields(strings.ToLower(c.Arg))
	if word := c.Use.EN[0]; word == "policy" {
		words = append([]string{word}, words...)
	}
	s := &t.View.Session
	if len(words) != 2 || h.cfg.Own == nil {
		line := settingsLine(s.Settings)
		if line == "" {
			line = "-"
		}
		return wording.Say(wording.SetUsage, t.Lang, line)
	}
	key, own := settingKey(words[0])
	if !own {
		return wording.Say(wording.FileOnly, t.Lang, key)
	}
	settings := withSetting(s.Settings, key, words[1])
	if settings != "" && !slices.Contains(defaultWords, words[1]) { // a setting that a later file invalidated can be removed
		if _, err := h.views.Resolve(s.ConversationID, settings); err != nil {
			return wording.Say(wording.NotSet, t.Lang, err)
		}
	}
	if err := h.store.Configure(ctx, t.Lease, settings); err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to store the settings of a conversation")
		return wording.Say(wording.UndoFailed, t.Lang)
	}
	s.Settings = settings
	zerolog.Ctx(ctx).Info().Str("key", key).Msg("Setting of a conversation changed")
	set := h.views.Settings(*s)
	line := settingsLine(settings)
	if line == "" {
		line = "-"
	}
	h.upkeep.Wake(t.Key) // the change may make work due
	return wording.Say(wording.Set, t.Lang, set.Policy.Name, line)
}

// overrides parses leading KEY=VALUE words behind /compact and returns the session's settings with them. why is the
// answer for an invalid one.
func (h *Handler) overrides(t *view.Exchange, rest string) (settings, focus, why string) {
	settings = t.View.Session.Settings
	words, changed := strings.Fields(rest), false
	for len(words) > 0 && h.cfg.Own != nil {
		name, value, ok := strings.Cut(words[0], "=")
		if !ok || !plainSetting.MatchString(name) || value == "" {
			break
		}
		key, own := settingKey(name)
		if !own {
			return "", "", wording.Say(wording.FileOnly, t.Lang, key)
		}
		settings, words, changed = withSetting(settings, key, value), words[1:], true
	}
	if !changed {
		return settings, rest, ""
	}
	if settings != "" {
		if _, err := h.cfg.Own(t.View.Session.ConversationID, settings); err != nil {
			return "", "", wording.Say(wording.NotSet, t.Lang, err)
		}
	}
	return settings, strings.Join(words, " "), ""
}
