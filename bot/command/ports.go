package command

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/approval"
	"ebb/bot/knowledge"
	"ebb/bot/manage"
	"ebb/bot/schedule"
	"ebb/bot/view"
	"ebb/memory"
	"ebb/memory/pages"
	"ebb/sessions"
	"ebb/sessions/lease"
)

// Stores are those that commands use, each with the methods that they call.
type Stores struct {
	Turns interface {
		Begin(ctx context.Context, l sessions.Lease, limit int) (sessions.View, error)
	}
	Inbox interface {
		Pending(ctx context.Context, key sessions.Key, limit int) ([]sessions.Event, error)
	}
	Sessions    manage.States
	Compactions interface {
		manage.Compactions
		Compactions(ctx context.Context, key sessions.Key, limit int) ([]sessions.LogEntry, error)
	}
	Scopes interface {
		manage.Scopes
		ScopeOf(ctx context.Context, group sessions.Key) (sessions.Scope, error)
	}
	Ledger ledger
	Limits counts
	Cards  interface {
		GivenUpCards(ctx context.Context) (int, error)
	}
	Withheld interface {
		CountWithheld(ctx context.Context, key sessions.Key, reads sessions.ModelID) (sessions.WithheldCount, error)
	}
	Flushes interface {
		Owed(ctx context.Context, key sessions.Key) (memory.Debt, error)
	}
	Log interface {
		Range(ctx context.Context, key sessions.Key, from, through int64, limit int) ([]sessions.Event, error)
	}
}

// ledger has the spending of sessions.
type ledger interface {
	Spent(ctx context.Context, key sessions.Key, since time.Time) ([]sessions.Spending, error)
}

// counts has the use of limits.
type counts interface {
	Used(ctx context.Context, a sessions.Askers) (sessions.Used, error)
	OthersTokens(ctx context.Context, robot sessions.RobotCode, person sessions.UserID) (int, error)
}

// Options are further parts of a [Handler].
type Options struct {
	Rights     memory.Rights
	Erasures   memory.Erasures
	CallBudget func(sessions.RobotCode) CallBudget // by robot; nil: no calls are counted
	Schedules  sessions.Schedules
	Planner    *schedule.Planner
	Audit      pages.Audit // see [manage.Config]
	Approvals  *approval.Desk
	Knowledge  *knowledge.Desk
	Files      manage.Files
}

// CallBudget is the state of the month's counted calls to the chat platform.
type CallBudget struct {
	Calls, Quota int64 // Quota 0: no bound
	Level        int   // 0 streamed cards, 1 unstreamed cards, 2 webhooks and calls without an alternative, 3 webhooks
}

// PermitsFiles reports whether a reply may have a file, which takes two calls as a card does.
func (b CallBudget) PermitsFiles() bool { return b.Level < 2 }

// Stats counts compactions that commands caused.
type Stats interface{ Compacted(e sessions.LogEntry) }

// refresher reads the view of a turn again after its command changed the conversation.
type refresher struct {
	turns interface {
		Begin(ctx context.Context, l sessions.Lease, limit int) (sessions.View, error)
	}
	views  *view.Builder
	leases *lease.Holder
}

func (r refresher) reload(ctx context.Context, t *view.CommandTurn) {
	v, err := r.turns.Begin(ctx, t.Lease, 0)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to reload the view")
		return
	}
	v.Pending = t.View.Pending
	r.views.Show(&v)
	t.View = v
}

// resume continues a turn under the lease that an erasure gave it.
func (r refresher) resume(ctx context.Context, t *view.CommandTurn, lease sessions.Lease) {
	t.Lease = lease
	r.leases.Learn(lease)
	r.reload(ctx, t)
}
