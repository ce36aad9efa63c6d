package manage

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/rs/zerolog"

	"ebb/compaction"
	"ebb/memory/pages"
	"ebb/sessions"
)

var settingNames = map[string]string{
	"a": "full_context_turns", "b": "cached_context_turns", "策略": "policy", "模式": "mode", "threshold": "auto_compact_threshold",
}

// fileOnly are keys of agent.compaction about costs, the model and all conversations.
var fileOnly = []string{
	"context_window", "reserve_tokens", "daily_tokens", "inline_deadline", "deadline", "retries", "notify",
}

var errModelCommand = errors.New("model: no such key, want the command /model")

var defaultWords = []string{"default", "默认"}

// modelKey is the model's key among a conversation's own settings; see [Manager.ChooseModel].
const modelKey = "model"

// SettingKey returns the key of a word, or [FileOnly] with it.
func SettingKey(word string) (string, error) {
	key := strings.ToLower(word)
	if name, ok := settingNames[key]; ok {
		key = name
	}
	switch {
	case slices.Contains(fileOnly, key):
		return key, FileOnly
	case key == modelKey:
		return key, &InvalidSetting{Reason: errModelCommand}
	}
	return key, nil
}

// WithSetting returns a JSON object of settings with key set, or without it if value is a default word.
func WithSetting(settings, key, value string) string {
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

// CheckEffect returns an [IdleSetting] for the first key that has no effect on the policy.
func CheckEffect(p compaction.Policy, keys ...string) error {
	for _, key := range keys {
		if what, has := compaction.Needs(key); has != nil && !has(p) {
			return &IdleSetting{Key: key, Needs: what, Policy: p}
		}
	}
	return nil
}

// Configure sets a setting of the actor's conversation, or removes it by a default word, and returns all of the
// session's own. It returns [FileOnly], [InvalidSetting] and [IdleSetting] for what can't be set.
func (m *Manager) Configure(ctx context.Context, a Actor, s sessions.Session, key, value string) (string, error) {
	if !a.owns(s.Key) {
		return s.Settings, NotAllowed
	}
	key, err := SettingKey(key)
	if err != nil {
		return s.Settings, err
	}
	settings := WithSetting(s.Settings, key, value)
	if settings != "" && !slices.Contains(defaultWords, value) { // a setting that a later file invalidated can be removed
		set, err := m.cfg.Resolve(s.ConversationID, settings)
		if err != nil {
			return s.Settings, &InvalidSetting{Reason: err}
		}
		if err := CheckEffect(set.Policy, key); err != nil {
			return s.Settings, err
		}
	}
	if err := m.configure(ctx, a, s, key, value, settings); err != nil {
		return s.Settings, err
	}
	zerolog.Ctx(ctx).Info().Str("key", key).Msg("Setting of a conversation changed")
	return settings, nil
}

// plainValue matches values that may stand in the audit: names of policies, modes and models, and numbers.
var plainValue = regexp.MustCompile(`^[\w.:/-]{1,64}$`)

func (m *Manager) configure(ctx context.Context, a Actor, s sessions.Session, key, value, settings string) error {
	if !plainValue.MatchString(value) {
		value = "…"
	}
	what := pages.Action{Action: Configured, Key: s.Key, Detail: key + " " + value}
	return m.record(ctx, a, a.Reader.Private, what, func(ctx context.Context) error { return m.cfg.Sessions.Configure(ctx, a.Asking.Lease, settings) })
}

// ChooseModel is [Manager.Configure] for the answering model. The caller has checked the name.
func (m *Manager) ChooseModel(ctx context.Context, a Actor, s sessions.Session, name string) (string, error) {
	if !a.owns(s.Key) {
		return s.Settings, NotAllowed
	}
	settings := WithSetting(s.Settings, modelKey, name)
	if err := m.configure(ctx, a, s, modelKey, name, settings); err != nil {
		return s.Settings, err
	}
	zerolog.Ctx(ctx).Info().Str("model", name).Msg("Model of a conversation changed")
	return settings, nil
}

// ChooseScope sets who shares the contexts of the actor's group; empty stands for the configured scope. It affects
// later messages.
func (m *Manager) ChooseScope(ctx context.Context, a Actor, s sessions.Session, scope sessions.Scope) error {
	switch {
	case s.ConversationType == sessions.Private:
		return GroupsOnly
	case a.Role == Operator:
		return NoTurn
	case !a.administers(s.Key):
		return NotAllowed
	}
	what := pages.Action{Action: ChoseScope, Key: s.Key, Detail: cmp.Or(string(scope), "default")}
	err := m.record(ctx, a, false, what, func(ctx context.Context) error { return m.cfg.Scopes.ChooseScope(ctx, a.Asking.Lease, scope) })
	if err != nil {
		return err
	}
	zerolog.Ctx(ctx).Info().Str("scope", string(scope)).Msg("Scope of a group changed")
	return nil
}
