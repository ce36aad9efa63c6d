package manage

import (
	"context"
	"regexp"
	"strings"

	"ebb/memory/pages"
	"ebb/sessions"
)

// plainSetting matches a possible key; 重点=端口 is a focus.
var plainSetting = regexp.MustCompile(`^(?:[a-zA-Z_]+|策略|模式)$`)

// Overrides parses the leading KEY=VALUE words of a request for a compaction. It returns the session's settings with
// them, and the rest as the focus: all of the text without resolve. key is that of an error, if it is of one.
func Overrides(s sessions.Session, text string, resolve Resolve) (settings, focus, key string, err error) {
	settings = s.Settings
	words := strings.Fields(text)
	var keys []string
	for len(words) > 0 && resolve != nil {
		name, value, ok := strings.Cut(words[0], "=")
		if !ok || !plainSetting.MatchString(name) || value == "" {
			break
		}
		if key, err = SettingKey(name); err != nil {
			return "", "", key, err
		}
		settings, words, keys = WithSetting(settings, key, value), words[1:], append(keys, key)
	}
	if len(keys) == 0 {
		return settings, text, "", nil
	}
	if settings != "" {
		set, err := resolve(s.ConversationID, settings)
		if err != nil {
			return "", "", "", &InvalidSetting{Reason: err}
		}
		if err := CheckEffect(set.Policy, keys...); err != nil {
			return "", "", "", err
		}
	}
	return settings, strings.Join(words, " "), "", nil
}

// RequestCompact asks the replica that has the session for a compaction. text has settings as KEY=VALUE, and then the
// summary's focus. It returns [sessions.ErrConflict] while one waits or runs.
func (m *Manager) RequestCompact(ctx context.Context, a Actor, s sessions.Session, text string) error {
	if err := m.operates(ctx, a, s.Key); err != nil {
		return err
	}
	settings, focus, _, err := Overrides(s, text, m.cfg.Resolve)
	if err != nil {
		return err
	}
	return m.cfg.Operators.Requests.RequestCompaction(ctx, sessions.CompactionRequest{Key: s.Key, Settings: settings, Focus: focus, RequestedBy: a.requester()})
}

// ResumeCalls lets all replicas call the chat platform again in a month like 2026-11, whose calls it refused: the
// organization bought more. Waiting replies are tried at once.
func (m *Manager) ResumeCalls(ctx context.Context, a Actor, month string) (sessions.ResumedCalls, error) {
	if a.Role < Operator {
		return sessions.ResumedCalls{}, NotAllowed
	}
	return recorded(ctx, m, a, false, pages.Action{Action: ResumedCalls, Detail: month}, func(ctx context.Context) (sessions.ResumedCalls, error) {
		return m.cfg.Operators.Calls.ResumeCalls(ctx, month)
	})
}

// RetryDebt lets the background repeat an owed flush without its pause.
func (m *Manager) RetryDebt(ctx context.Context, a Actor, key sessions.Key) error {
	if a.Role < Operator {
		return NotAllowed
	}
	return m.cfg.Operators.Flushes.RetryDebt(ctx, key)
}
