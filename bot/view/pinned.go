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

const pinnedMemories = 100

// pinnedShare of the threshold bounds pinned memory, which stays after a compaction.
const pinnedShare = 12

// Facts returns the facts that pinned memory is drawn from, and those of more that it lacks.
func (mem Memory) Facts(ctx context.Context, v sessions.View, more []int64) ([]memory.Memory, error) {
	chat := draft.ChatOf(v.Session, slices.Concat(v.Tail, v.Pending))
	chat.Reads = mem.choices.Reads(v.Session)
	reader := draft.ReaderOf(chat)
	facts, err := mem.facts.Pinned(ctx, reader, pinnedMemories)
	if err != nil {
		return nil, fmt.Errorf("read memory: %w", err)
	}
	for _, id := range more {
		if slices.ContainsFunc(facts, func(m memory.Memory) bool { return m.ID == id }) {
			continue
		}
		values, err := mem.facts.Values(ctx, reader, id)
		if err != nil {
			return nil, fmt.Errorf("read memory: %w", err)
		}
		for _, m := range values {
			if m.ID == id {
				facts = append(facts, m)
			}
		}
	}
	return facts, nil
}

// Pinned returns the memory at the head of the view, within its token budget. Facts about the current speakers come
// first, then the group's, then the rest; within each rank speakers take turns, the newest fact first. Facts are never
// cut, so that an erasure finds them in the stored text.
func (mem Memory) Pinned(ctx context.Context, v sessions.View) (*sessions.Pinned, error) {
	budget := min(mem.Remember.PinnedTokens, mem.choices.Settings(v.Session).Window.Trigger()/pinnedShare)
	if budget <= 0 {
		return &sessions.Pinned{}, nil
	}
	talk := slices.Concat(v.Tail, v.Pending)
	chat := draft.ChatOf(v.Session, talk)
	chat.Reads = mem.choices.Reads(v.Session)
	ms, err := mem.facts.Pinned(ctx, draft.ReaderOf(chat), pinnedMemories)
	if err != nil {
		return nil, fmt.Errorf("read memory: %w", err)
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
		ranked[i] = rankedMemory{id: m.ID, line: memory.PinnedLine(m, mem.shared.Location), speaker: m.SaidBy, rank: r, nth: said[by]}
		said[by]++
	}
	slices.SortStableFunc(ranked, func(x, y rankedMemory) int { return cmp.Or(x.rank-y.rank, x.nth-y.nth) })
	var out sessions.Pinned
	var people, shared strings.Builder
	for _, m := range ranked {
		line := m.line
		n := mem.shared.Counter.Count(line)
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

type rankedMemory struct {
	id      int64
	line    string
	speaker sessions.UserID
	rank    int
	nth     int // index among its speaker's memories of the rank
}
