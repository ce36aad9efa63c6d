package view

import (
	"sync"

	"ebb/compaction"
	"ebb/sessions"
)

// Own resolves a conversation's own settings over the file's. settings is a JSON object of keys of agent.compaction. The
// error names each key that can't work, with the value expected. It may be shown to people.
type Own func(id sessions.ConversationID, settings string) (compaction.Settings, error)

// Settings are what the session's conversation is compacted by: its own, where it has some, over its group's in the file,
// over the common ones. This is the one place that decides it.
func (b *Builder) Settings(s sessions.Session) compaction.Settings {
	file, ok := b.Cfg.Groups[s.ConversationID]
	if !ok {
		file = b.Cfg.Compaction
	}
	if s.Settings == "" || b.Cfg.Own == nil {
		return file
	}
	own, err := b.Resolve(s.ConversationID, s.Settings)
	if err != nil {
		return file // the file has changed since the command; /status says so
	}
	return own
}

// Resolve is a conversation's own settings over the file's, remembered; see [Own].
func (b *Builder) Resolve(id sessions.ConversationID, settings string) (compaction.Settings, error) {
	return b.resolved.get(b.Cfg.Own, id, settings)
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

// Spent reports whether a session's flushes and compactions have used up what they may take in a day. Until midnight
// (UTC) nothing asks a model on its behalf but people; what the window can't hold is left out of the view.
func Spent(set compaction.Settings, s sessions.Session) bool {
	return set.DailyTokens > 0 && s.SpentToday >= set.DailyTokens
}
