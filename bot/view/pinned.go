package view

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"ebb/memory"
	"ebb/memory/draft"
	"ebb/sessions"
)

// pinnedMemories is how many memories are looked at for the head of a view.
const pinnedMemories = 100

// pinnedShare bounds it by a part of the context that a compaction is due at: it stands there after the compaction, too.
const pinnedShare = 12

// Pinned is the memory that the view shows at its head from now on, as far as its budget of tokens goes: what is known of
// the people who talk, then the group's, then the rest; of each the newest of everybody who said one, then the second of everybody. Facts stand in it whole, so that what
// is forgotten can be found in it. Nicks are those of this moment: the text is stored, and stays until the next compaction.
func (b *Builder) Pinned(ctx context.Context, v sessions.View) (*sessions.Pinned, error) {
	budget := min(b.Cfg.Remember.PinnedTokens, b.Settings(v.Session).Window.Trigger()/pinnedShare)
	if budget <= 0 {
		return &sessions.Pinned{}, nil
	}
	talk := slices.Concat(v.Tail, v.Pending)
	ms, err := b.memory.Pinned(ctx, draft.ReaderOf(draft.ChatOf(v.Session, talk)), pinnedMemories)
	if err != nil {
		return nil, fmt.Errorf("read memory of session %s: %w", v.Session.Key, err)
	}
	speaks := map[sessions.UserID]bool{}
	for _, e := range talk {
		if e.Role == sessions.RoleUser && e.SenderID != "" {
			speaks[e.SenderID] = true
		}
	}
	rank := func(m memory.Memory) int {
		switch {
		case m.Scope == memory.ScopeUser || speaks[m.SubjectID]:
			return 0
		case m.Scope == memory.ScopeGroup:
			return 1
		case m.Scope == memory.ScopeSession:
			return 2
		}
		return 3
	}
	ranked, said := make([]rankedMemory, len(ms)), map[rankedMemory]int{}
	for i, m := range ms {
		r := rank(m)
		by := rankedMemory{speaker: m.SaidBy, rank: r}
		ranked[i] = rankedMemory{id: m.ID, line: memory.PinnedLine(m, b.Cfg.Location), speaker: m.SaidBy, rank: r, nth: said[by]}
		said[by]++
	}
	slices.SortStableFunc(ranked, func(x, y rankedMemory) int { return cmp.Or(x.rank-y.rank, x.nth-y.nth) })
	var out sessions.Pinned
	var people, shared strings.Builder
	for _, m := range ranked {
		line := m.line
		n := b.Counter.Count(line)
		if n > budget {
			continue // a shorter one may fit
		}
		budget -= n
		out.Rows = append(out.Rows, m.id)
		if m.rank == 0 {
			people.WriteString(line)
		} else {
			shared.WriteString(line)
		}
	}
	if people.Len() > 0 {
		out.Text += "[User Memory]\n" + people.String()
	}
	if shared.Len() > 0 {
		out.Text += "[Scope Memory]\n" + shared.String()
	}
	return &out, nil
}

// rankedMemory is a memory in the order of the head of a view: speakers take turns within each rank.
type rankedMemory struct {
	id      int64
	line    string
	speaker sessions.UserID
	rank    int
	nth     int // memory of its speaker within the rank
}
