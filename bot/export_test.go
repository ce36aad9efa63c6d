package bot

import (
	"ebb/bot/outbox"
	"ebb/bot/upkeep"
	"ebb/bot/view"
	"ebb/sessions/lease"
	"ebb/sessions/serial"
)

// Bounds of what waits.
const (
	LearntFor   = learntFor
	MaxRefusing = maxRefusing
	LeaveFlush  = leaveFlush
)

// Views, and the methods from here on, are the parts of a bot for the tests of this folder.
func (b *Bot) Views() *view.Builder { return b.views }

func (b *Bot) Worker() *upkeep.Worker { return b.worker }

func (b *Bot) Upkeep() *serial.Mailboxes { return b.upkeep }

func (b *Bot) Turns() *serial.Mailboxes { return b.turns }

func (b *Bot) Outbox() *outbox.Outbox { return b.outbox }

func (b *Bot) Leases() *lease.Holder { return b.shared.Leases }

// Figure is a number of the restart report.
func (b *Bot) Figure(name string) int64 { return b.restarts.byName()[name].Load() }
