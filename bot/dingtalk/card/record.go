package card

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/dingtalk/calls"
	"ebb/sessions"
)

// A turn waits for some of these writes.
const storeTime = 5 * time.Second

func (c *Cards) giveBack(ctx context.Context, r calls.Reservation, apis ...calls.API) {
	one, stop := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer stop()
	for _, api := range apis {
		if err := r.Return(one, api); err != nil {
			zerolog.Ctx(ctx).Debug().Err(err).Msg("Call of a card not returned to the month")
		}
	}
}

// A card without a stored final state is closed in the background, with its prepaid call.
func (c *Cards) settle(ctx context.Context, key sessions.Key, track string, state sessions.CardState) (stored bool) {
	one, stop := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer stop()
	err := c.cfg.Store.SettleCard(one, key, track, state)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("State of a card not stored")
	}
	return err == nil
}

func (c *Cards) setPrepaid(ctx context.Context, key sessions.Key, track string, prepaid bool) error {
	one, stop := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer stop()
	return c.cfg.Store.SetPrepaid(one, sessions.Card{Key: key, Track: track, Prepaid: prepaid, TextKey: c.textKey(track)})
}
