package bot

import (
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/rs/zerolog"

	"ebb/compaction"
	"ebb/sessions"
)

// Own resolves a conversation's own settings over the file's. settings is a JSON object of keys of agent.compaction. The
// error names each key that can't work, with the value expected. It may be shown to people.
type Own func(id sessions.ConversationID, settings string) (compaction.Settings, error)

// settings are what the session's conversation is compacted by: its own, where it has some, over its group's in the file,
// over the common ones. This is the one place that decides it.
func (b *Bot) settings(s sessions.Session) compaction.Settings {
	file, ok := b.cfg.Groups[s.ConversationID]
	if !ok {
		file = b.cfg.Compaction
	}
	if s.Settings == "" || b.cfg.Own == nil {
		return file
	}
	own, err := b.resolved.get(b.cfg.Own, s.ConversationID, s.Settings)
	if err != nil {
		return file // the file has changed since the command; /status says so
	}
	return own
}

// resolved keeps what own settings come to: they are asked for often, and seldom change.
type resolved struct {
	mu    sync.Mutex
	known map[[2]string]resolution
}

type resolution struct {
	set compaction.Settings
	err error
}

// maxResolved bounds what is kept.
const maxResolved = 1000

func (r *resolved) get(own Own, id sessions.ConversationID, settings string) (compaction.Settings, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := [2]string{string(id), settings}
	if one, ok := r.known[key]; ok {
		return one.set, one.err
	}
	if r.known == nil || len(r.known) >= maxResolved {
		r.known = map[[2]string]resolution{}
	}
	set, err := own(id, settings)
	r.known[key] = resolution{set, err}
	return set, err
}

// once is the key under which a context carries settings for one compaction.
type once struct{}

// forOnce has the compactions of a context go by a session's settings with others over them.
func forOnce(ctx context.Context, settings string) context.Context {
	return context.WithValue(ctx, once{}, settings)
}

// onceOr are the settings that a context carries, or the session's own.
func onceOr(ctx context.Context, own string) string {
	if settings, ok := ctx.Value(once{}).(string); ok {
		return settings
	}
	return own
}

// settingNames are short names of keys that people may write.
var settingNames = map[string]string{
	"a": "full_context_turns", "b": "cached_context_turns", "策略": "policy", "模式": "mode", "threshold": "auto_compact_threshold",
}

// fileOnly are keys that bound what a conversation costs, or that belong to the model: the file alone sets them.
var fileOnly = []string{"context_window", "reserve_tokens", "daily_tokens"}

// plainSetting matches what may be a key; 重点=端口 is a focus.
var plainSetting = regexp.MustCompile(`^(?:[a-zA-Z_]+|策略|模式)$`)

// defaultWords take a setting back.
var defaultWords = []string{"default", "默认"}

// withSetting is an object of settings with one more, or without it where the value is a default word.
func withSetting(settings, key, value string) string {
	all := map[string]any{}
	if settings != "" {
		_ = json.Unmarshal([]byte(settings), &all) // the storage holds nothing but objects
	}
	if slices.Contains(defaultWords, value) {
		delete(all, key)
	} else {
		all[key] = settingValue(value)
	}
	if len(all) == 0 {
		return ""
	}
	text, _ := json.Marshal(all) // of strings, numbers and booleans: there is no way to fail
	return string(text)
}

// settingValue is a number or a boolean as JSON has it, and a text for anything else.
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

// settingKey is the key that a word names; own is false for keys of the file alone.
func settingKey(word string) (key string, own bool) {
	key = strings.ToLower(word)
	if name, ok := settingNames[key]; ok {
		key = name
	}
	return key, !slices.Contains(fileOnly, key)
}

// settingsLine lists a session's own settings as people read them; empty for none.
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

// setCommand is /compact set KEY VALUE: it keeps one setting of the conversation, or takes it back.
func (b *Bot) setCommand(ctx context.Context, t *turn, words []string) string {
	s := &t.view.Session
	if len(words) != 2 || b.cfg.Own == nil {
		line := settingsLine(s.Settings)
		if line == "" {
			line = "-"
		}
		return say(saySetUsage, t.lang, line)
	}
	key, own := settingKey(words[0])
	if !own {
		return say(sayFileOnly, t.lang, key)
	}
	settings := withSetting(s.Settings, key, words[1])
	if settings != "" && !slices.Contains(defaultWords, words[1]) { // one that a later file made impossible can be taken back
		if _, err := b.resolved.get(b.cfg.Own, s.ConversationID, settings); err != nil {
			return say(sayNotSet, t.lang, err)
		}
	}
	if err := b.store.Configure(ctx, t.lease, settings); err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Settings of a conversation not stored")
		return say(sayUndoFailed, t.lang)
	}
	s.Settings = settings
	zerolog.Ctx(ctx).Info().Str("key", key).Msg("Setting of a conversation changed")
	set := b.settings(*s)
	line := settingsLine(settings)
	if line == "" {
		line = "-"
	}
	b.upkeep.Wake(t.key) // what is due may have changed
	return say(saySet, t.lang, set.Policy.Name, line)
}

// overrides splits KEY=VALUE words off the front of what stands behind /compact, and returns the session's settings with
// them. why is what to tell where one can't be.
func (b *Bot) overrides(t *turn, rest string) (settings, focus, why string) {
	settings = t.view.Session.Settings
	words, changed := strings.Fields(rest), false
	for len(words) > 0 && b.cfg.Own != nil {
		name, value, ok := strings.Cut(words[0], "=")
		if !ok || !plainSetting.MatchString(name) || value == "" {
			break
		}
		key, own := settingKey(name)
		if !own {
			return "", "", say(sayFileOnly, t.lang, key)
		}
		settings, words, changed = withSetting(settings, key, value), words[1:], true
	}
	if !changed {
		return settings, rest, ""
	}
	if settings != "" {
		if _, err := b.cfg.Own(t.view.Session.ConversationID, settings); err != nil {
			return "", "", say(sayNotSet, t.lang, err)
		}
	}
	return settings, strings.Join(words, " "), ""
}
