package bottest

import (
	"ebb/bot"
	"ebb/bot/upkeep"
	"ebb/memory"
	"ebb/sessions"
)

// PortsOf are the store, for each aggregate.
func PortsOf(s *Store) sessions.Stores {
	return sessions.Stores{
		Inbox: s, Turns: s, Sessions: s, Outbox: s, Cards: s, Leases: s, Compactions: s, Jobs: s, Ledger: s, Limits: s, Scopes: s, Withheld: s,
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
