package bot

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"ebb/sessions"
)

// maxLost is the number of messages in a row to a person or a conversation that is gone after which a schedule ends: each takes a call.
const maxLost = 3

// noteSchedules counts a reply of schedules that DingTalk can't deliver to anyone. One that arrived begins the count again.
func noteSchedules(ctx context.Context, store sessions.Schedules, timeout time.Duration, o sessions.Outgoing, arrived bool) {
	for _, id := range o.Reply.Target.Schedules {
		one, stop := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		var ended bool
		var err error
		if arrived {
			err = store.ReachSchedule(one, o.Key, id)
		} else {
			ended, err = store.LoseSchedule(one, o.Key, id, maxLost)
		}
		stop()
		log := zerolog.Ctx(ctx).With().Int64("schedule", id).Logger()
		switch {
		case err != nil && !errors.Is(err, sessions.ErrNotFound):
			log.Warn().Err(err).Bool("arrived", arrived).Msg("Outcome of a schedule's message not counted")
		case ended:
			log.Warn().Int("lost", maxLost).Msg("Schedule ended: its person or conversation is gone")
		}
	}
}
