package upkeep

import (
	"context"
	"maps"
	"sync"
	"time"

	"ebb/bot/parts"
	"ebb/bot/view"
	"ebb/compaction"
	"ebb/sessions"
	"ebb/sessions/periodic"
	"ebb/sessions/serial"
)

// backlogs finds sessions whose upkeep is due without a turn.
type backlogs struct {
	shared      *parts.Shared
	views       *view.Builder
	store       Compactions
	locks       *locks
	idle        *idleBacklogs
	maintenance *serial.Mailboxes
}

// wake wakes the upkeep of quiet sessions over their threshold, and of those with rows under suspicion. Backlogs remain after
// imports, erasures, smaller windows, failures, kills and exhausted budgets. A session in which the upkeep found no work is skipped until its
// context changes, so that its lease can be released.
func (b backlogs) wake(ctx context.Context) {
	file := b.shared.Current.Get()
	least := file.Compaction.Window.Trigger()
	for _, own := range file.Compactions {
		least = min(least, own.Window.Trigger())
	}
	var after sessions.Key
	listed := map[sessions.Key]bool{}
	for more := true; more; {
		list, err := b.store.Backlogs(ctx, b.shared.Leases.Owner(), least, after, pageSize)
		if err != nil {
			periodic.LogFailure(ctx, err, "Failed to list backlogs")
			return
		}
		for _, s := range list {
			after, listed[s.Key] = s.Key, true
			set := b.views.Choices.Settings(s)
			due := s.Suspicion != nil || set.Enabled && s.TotalTokens >= set.Window.Trigger()
			if due && !view.Spent(set, s) && !b.idle.has(s, b.shared.Now()) && !b.locks.busy(s.Key) {
				b.maintenance.Wake(s.Key)
			}
		}
		more = len(list) == pageSize
	}
	b.idle.retain(listed)
}

// idleBacklogs are listed sessions without due work, for example if the policy counts messages. The
// size of the context identifies each.
type idleBacklogs struct {
	mu    sync.Mutex
	known map[sessions.Key]idleBacklog
}

type idleBacklog struct {
	tokens int
	until  time.Time // end of the pause; zero: time does not change the decision
}

// add leaves out sessions that wait for a retry or for the next day.
func (i *idleBacklogs) add(s sessions.Session, set compaction.Settings, now time.Time) {
	if view.Spent(set, s) || now.Before(s.CompactRetryAt) {
		return
	}
	idle := idleBacklog{tokens: s.TotalTokens}
	if at := set.Policy.CooledAt(s); at.After(now) {
		idle.until = at
	}
	i.put(s.Key, idle)
}

// searchPause follows a search that a model did not let end. A turn begins the next search at once, so the pause is for quiet sessions.
const searchPause = 30 * time.Minute

// rest keeps a session's search back for a pause.
func (i *idleBacklogs) rest(s sessions.Session, now time.Time) {
	i.put(s.Key, idleBacklog{s.TotalTokens, now.Add(searchPause)})
}

func (i *idleBacklogs) put(key sessions.Key, idle idleBacklog) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.known == nil {
		i.known = map[sessions.Key]idleBacklog{}
	}
	i.known[key] = idle
}

func (i *idleBacklogs) has(s sessions.Session, now time.Time) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	idle, ok := i.known[s.Key]
	return ok && idle.tokens == s.TotalTokens && (idle.until.IsZero() || now.Before(idle.until))
}

func (i *idleBacklogs) retain(listed map[sessions.Key]bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	maps.DeleteFunc(i.known, func(key sessions.Key, _ idleBacklog) bool { return !listed[key] })
}
