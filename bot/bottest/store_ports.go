package bottest

import (
	"context"

	"ebb/bot"
	"ebb/bot/upkeep"
	"ebb/memory"
	"ebb/sessions"
)

// PortsOf are the store, for each aggregate.
func PortsOf(s *Store) sessions.Stores {
	return sessions.Stores{
		Inbox: s, Turns: s, Sessions: s, Outbox: s, Cards: s, Leases: s, Compactions: s, Jobs: s, Ledger: s, Limits: s, Scopes: scopes{s}, Withheld: s,
	}
}

// MemoryOf are the stores of memory.
func MemoryOf(s *Store) memory.Stores {
	return memory.Stores{Facts: s, Search: s, Flushes: s, Digests: s}
}

// Knows makes a bot answer what people ask about their data.
func Knows(c *bot.Config, r interface {
	memory.Rights
	memory.Erasures
}) {
	c.Rights, c.Erasures = r, r
}

// Tidies makes a bot tidy its memory.
func Tidies(c *bot.Config, a interface {
	memory.Upkeep
	upkeep.Index
}) {
	c.Tidying, c.Index = a, a
}

// scopes are those of a store.
type scopes struct{ s *Store }

// PlaceOf implements sessions.Scopes.
func (p scopes) PlaceOf(ctx context.Context, m sessions.Message, among []sessions.Key) (sessions.Place, error) {
	return do(p.s, "place", func() (sessions.Place, error) { return p.s.Mem.Scopes.PlaceOf(ctx, m, among) })
}

// ScopeOf implements sessions.Scopes.
func (p scopes) ScopeOf(ctx context.Context, group sessions.Key) (sessions.Scope, error) {
	return do(p.s, "place", func() (sessions.Scope, error) { return p.s.Mem.Scopes.ScopeOf(ctx, group) })
}

// ChooseScope implements sessions.Scopes.
func (p scopes) ChooseScope(ctx context.Context, l sessions.Lease, scope sessions.Scope) error {
	_, err := do(p.s, "scope", func() (struct{}, error) { return struct{}{}, p.s.Mem.Scopes.ChooseScope(ctx, l, scope) })
	return err
}
