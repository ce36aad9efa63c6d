package robots

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"ebb/sessions"
	"ebb/sessions/periodic"
	"ebb/sessions/retry"
)

// Records keep the robots of an installation, for all replicas.
type Records interface {
	// SeeRobot records that a process with a robot started, and ends the pauses of the robot's replies: they may have waited for it.
	SeeRobot(ctx context.Context, r sessions.Robot) error
	// KnownRobots lists the robots of the installation, former ones too.
	KnownRobots(ctx context.Context) ([]sessions.Robot, error)
	// LeftBy counts the sessions of a robot, and their open work.
	LeftBy(ctx context.Context, code sessions.RobotCode) (sessions.RobotWork, error)
}

// readInterval bounds the time for which a process with one robot takes the sessions of a new one for its own. The replica that has the
// new one owns these sessions meanwhile.
const readInterval = 15 * time.Second

// Registry says for which robots this process speaks. Several serve their own sessions alone. An only one may have another code in its
// frames than its client id, so it serves each code that is of no other robot of the installation.
type Registry struct {
	records Records
	own     []sessions.Robot
	others  atomic.Pointer[map[sessions.RobotCode]sessions.Robot]
	seen    bool // the start is recorded: it ends pauses of replies, so it is not repeated
	logged  bool // the former robots are logged
}

// NewRegistry is for the robots of a process. It serves no other robot until the first [Registry.Read].
func NewRegistry(records Records, own []sessions.Robot) *Registry {
	return &Registry{records: records, own: own}
}

// Serves reports whether the sessions of a robot are those of this process. An empty code is that of an only robot.
func (r *Registry) Serves(code sessions.RobotCode) bool {
	if code == "" || r.isOwn(code) {
		return true
	}
	others := r.others.Load()
	if len(r.own) > 1 || others == nil {
		return false
	}
	_, other := (*others)[code]
	return !other
}

func (r *Registry) isOwn(code sessions.RobotCode) bool {
	return slices.ContainsFunc(r.own, func(one sessions.Robot) bool { return one.Code == code })
}

// Others lists the known robots that this process does not have, by their codes.
func (r *Registry) Others() []sessions.Robot {
	others := r.others.Load()
	if others == nil {
		return nil
	}
	return slices.SortedFunc(maps.Values(*others), func(a, b sessions.Robot) int { return cmp.Compare(a.Code, b.Code) })
}

// Name is empty for a robot that the installation does not know. A former one has its code behind the name, which another one may have now.
func (r *Registry) Name(code sessions.RobotCode) string {
	named := func(all []sessions.Robot) string {
		if i := slices.IndexFunc(all, func(one sessions.Robot) bool { return one.Code == code }); i >= 0 {
			return all[i].Name
		}
		return ""
	}
	if own := named(r.own); own != "" {
		return own
	}
	name := named(r.Others())
	if name == "" || name == string(code) {
		return name
	}
	return name + " (" + string(code) + ")"
}

// Read reads the robots of the installation.
func (r *Registry) Read(ctx context.Context) error {
	known, err := r.records.KnownRobots(ctx)
	if err != nil {
		return err
	}
	others := map[sessions.RobotCode]sessions.Robot{}
	for _, one := range known {
		if !r.isOwn(one.Code) {
			others[one.Code] = one
		}
	}
	r.others.Store(&others)
	return nil
}

// Task returns the background work.
func (r *Registry) Task() periodic.Task {
	return periodic.Task{
		Interval: readInterval, AtOnce: true, Timeout: readInterval, Do: r.run,
		Failure: "Failed to read the bots of the installation", Recovery: "The bots of the installation are read again",
		Pauses: retry.Pauses{First: time.Second, Max: readInterval},
	}
}

// run records the start first: replicas with one robot alone learn from it that the others are not theirs.
func (r *Registry) run(ctx context.Context) error {
	if !r.seen {
		for _, one := range r.own {
			if err := r.records.SeeRobot(ctx, one); err != nil {
				return err
			}
		}
		r.seen = true
	}
	if err := r.Read(ctx); err != nil || r.logged {
		return err
	}
	for _, one := range r.Others() {
		left, err := r.records.LeftBy(ctx, one.Code)
		if err != nil {
			return err
		}
		if left != (sessions.RobotWork{}) {
			zerolog.Ctx(ctx).Warn().Str("bot", one.Name).Str("robot_code", string(one.Code)).Int64("sessions", left.Sessions).
				Int64("messages", left.Messages).Int64("replies", left.Replies).Int64("cards", left.Cards).
				Int64("schedules", left.Schedules).Int64("approvals", left.Approvals).
				Msg("Bot is not configured, its sessions and its open work wait for it")
		}
	}
	r.logged = true
	return nil
}
