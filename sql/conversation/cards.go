package conversation

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"time"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// Cards keeps the cards of replies.
type Cards struct {
	db     *pg.DB
	prefix string                      // begins the keys of sessions whose abandoned cards are listed
	others func() []sessions.RobotCode // robots without a list of their abandoned cards
}

func noRobots() []sessions.RobotCode { return nil }

// NewCards returns the cards of a database.
func NewCards(db *pg.DB) *Cards { return &Cards{db: db, others: noRobots} }

// ForRobot returns the cards with the abandoned ones of one robot: another robot's application can't end them.
func (s *Cards) ForRobot(robot sessions.RobotCode) *Cards {
	return &Cards{db: s.db, prefix: pg.SessionPrefix(robot), others: noRobots}
}

// Without returns the cards with the abandoned ones of all robots but others, which are read at each look.
func (s *Cards) Without(others func() []sessions.RobotCode) *Cards {
	return &Cards{db: s.db, others: others}
}

// OpenCard implements sessions.Cards.
func (s *Cards) OpenCard(ctx context.Context, l sessions.Lease, c sessions.Card, hold time.Duration) (sessions.CardState, bool, error) {
	p := s.db.Pool.Pipeline()
	held := s.db.Q.CardHold(ctx, p, []*dbsqlc.CardHoldParams{{SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term}})
	opened := s.db.Q.CardOpen(ctx, p, []*dbsqlc.CardOpenParams{{
		SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term, OutTrackID: c.Track, TurnEventID: c.EventID,
		Kind: string(c.Kind), ContentKey: c.TextKey, HoldSeconds: hold.Seconds(),
	}})
	states := s.db.Q.CardState(ctx, p, []*dbsqlc.CardStateParams{{SessionKey: l.Key, OutTrackID: c.Track}})
	err := p.Send(ctx)
	if err == nil {
		_, err = pg.One(held.QueryRow)
		err = pg.AsLost(err)
	}
	var fresh, state []string
	if err == nil {
		fresh, err = pg.Found(opened.QueryRow)
	}
	if err == nil {
		state, err = pg.Found(states.QueryRow)
	}
	if err != nil {
		return "", false, fmt.Errorf("recording card %s: %w", c.Track, err)
	}
	if len(state) == 0 { // deleted meanwhile
		return sessions.CardOpen, true, nil
	}
	return sessions.CardState(state[0]), len(fresh) == 0, nil
}

// OpenCardOf implements sessions.Cards.
func (s *Cards) OpenCardOf(ctx context.Context, key sessions.Key, tracks []string, events []int64) (sessions.Card, error) {
	r, err := s.db.Q.CardOpenOf(ctx, s.db.Pool, &dbsqlc.CardOpenOfParams{SessionKey: key, Tracks: tracks, Events: append([]int64{}, events...)})
	if err != nil {
		return sessions.Card{}, fmt.Errorf("looking for an open card: %w", pg.AsNotFound(err))
	}
	return sessions.Card{
		Key: key, Kind: sessions.ReplyCard, Track: r.OutTrackID, EventID: r.TurnEventID, Prepaid: r.Prepaid, TextKey: r.ContentKey,
		Busy: time.Duration(r.BusySeconds * float64(time.Second)), CreatedAt: r.CreatedAt,
	}, nil
}

// SettleCard implements sessions.Cards.
func (s *Cards) SettleCard(ctx context.Context, key sessions.Key, track string, state sessions.CardState) error {
	if state == sessions.CardOpen {
		if err := s.db.Q.CardRelease(ctx, s.db.Pool, &dbsqlc.CardReleaseParams{SessionKey: key, OutTrackID: track}); err != nil {
			return fmt.Errorf("ending the hold of card %s: %w", track, err)
		}
		return nil
	}
	n, err := s.db.Q.CardSettle(ctx, s.db.Pool, &dbsqlc.CardSettleParams{SessionKey: key, OutTrackID: track, State: string(state)})
	if err == nil && n == 0 {
		err = s.db.Q.CardForget(ctx, s.db.Pool, &dbsqlc.CardForgetParams{SessionKey: key, OutTrackID: track})
	}
	if err != nil {
		return fmt.Errorf("settling card %s: %w", track, err)
	}
	return nil
}

// SetPrepaid implements sessions.Cards.
func (s *Cards) SetPrepaid(ctx context.Context, c sessions.Card) error {
	err := s.db.Q.CardPrepaid(ctx, s.db.Pool, &dbsqlc.CardPrepaidParams{SessionKey: c.Key, OutTrackID: c.Track, Prepaid: c.Prepaid, ContentKey: c.TextKey})
	if err != nil {
		return fmt.Errorf("recording the end of card %s: %w", c.Track, err)
	}
	return nil
}

// LeaseOf implements sessions.Cards.
func (s *Cards) LeaseOf(ctx context.Context, key sessions.Key) (sessions.Lease, error) {
	p := s.db.Pool.Pipeline()
	read := s.db.Q.LeaseRead(ctx, p, []sessions.Key{key})
	err := p.Send(ctx)
	row, none := pg.One(read.QueryRow)
	if err = cmp.Or(err, none); err != nil {
		return sessions.Lease{}, fmt.Errorf("reading a lease: %w", pg.AsNotFound(err))
	}
	return sessions.Lease{Key: key, Owner: sessions.ReplicaID(row.Owner), Term: row.Term}, nil
}

// BeginFrame implements sessions.Cards. The lock lets no erasure commit between the look at the term and the mark.
func (s *Cards) BeginFrame(ctx context.Context, l sessions.Lease, track, carrier string) error {
	p := s.db.Pool.Pipeline()
	held := s.db.Q.CardHold(ctx, p, []*dbsqlc.CardHoldParams{{SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term}})
	marked := s.db.Q.CardFrame(ctx, p, []*dbsqlc.CardFrameParams{{
		SessionKey: l.Key, OutTrackID: track, Owner: string(l.Owner), Term: l.Term, FrameSeconds: sessions.FrameTime.Seconds(), Carrier: pg.Clean(carrier),
	}})
	err := p.Send(ctx)
	if err == nil {
		_, err = pg.One(held.QueryRow)
		err = pg.AsLost(err)
	}
	var rows []string
	if err == nil {
		rows, err = pg.Found(marked.QueryRow)
	}
	if err == nil && len(rows) == 0 {
		err = sessions.ErrConflict
	}
	if err != nil {
		return fmt.Errorf("recording a call that changes card %s: %w", track, err)
	}
	return nil
}

// EndFrame implements sessions.Cards.
func (s *Cards) EndFrame(ctx context.Context, l sessions.Lease, track string) error {
	err := s.db.Q.CardFrameEnd(ctx, s.db.Pool, &dbsqlc.CardFrameEndParams{SessionKey: l.Key, OutTrackID: track, Term: l.Term})
	if err != nil {
		return fmt.Errorf("recording the end of calls that change card %s: %w", track, err)
	}
	return nil
}

// LeaveCard implements sessions.Cards.
func (s *Cards) LeaveCard(ctx context.Context, o sessions.Outgoing) error {
	n, err := s.db.Q.CardLeave(ctx, s.db.Pool, &dbsqlc.CardLeaveParams{SessionKey: o.Key, ID: o.ID, Attempt: o.Attempts})
	if err := pg.Require(n, err, sessions.ErrConflict); err != nil {
		return fmt.Errorf("leaving the card of reply %d: %w", o.ID, err)
	}
	return nil
}

// AbandonedCards implements sessions.Cards.
func (s *Cards) AbandonedCards(ctx context.Context, kind sessions.CardKind, retry time.Duration, limit int) ([]sessions.Card, error) {
	others := []string{}
	for _, robot := range s.others() {
		others = append(others, url.PathEscape(string(robot)))
	}
	rows, err := s.db.Q.CardsAbandoned(ctx, s.db.Pool, &dbsqlc.CardsAbandonedParams{
		Kind: string(kind), Prefix: s.prefix, Others: others, MaxCards: pg.Clamp(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("looking for abandoned cards: %w", err)
	}
	var out []sessions.Card
	for _, r := range rows {
		n, err := s.db.Q.CardClaim(ctx, s.db.Pool, &dbsqlc.CardClaimParams{SessionKey: r.SessionKey, OutTrackID: r.OutTrackID, Tries: r.Tries, RetrySeconds: retry.Seconds()})
		if err != nil && len(out) > 0 {
			break // those that are claimed count as tried; the others come again
		}
		if err != nil {
			return nil, fmt.Errorf("claiming an abandoned card: %w", err)
		}
		if n > 0 {
			out = append(out, sessions.Card{Key: r.SessionKey, Kind: kind, Track: r.OutTrackID, EventID: r.TurnEventID, Prepaid: r.Prepaid, Tries: int(r.Tries) + 1, TextKey: r.ContentKey, CreatedAt: r.CreatedAt})
		}
	}
	return out, nil
}

// PostponeCard implements sessions.Cards.
func (s *Cards) PostponeCard(ctx context.Context, c sessions.Card, pause time.Duration, made bool) error {
	err := s.db.Q.CardPostpone(ctx, s.db.Pool, &dbsqlc.CardPostponeParams{
		SessionKey: c.Key, OutTrackID: c.Track, PauseSeconds: pause.Seconds(), Made: made, Tries: pg.Clamp(c.Tries),
	})
	if err != nil {
		return fmt.Errorf("postponing the end of card %s: %w", c.Track, err)
	}
	return nil
}

// GivenUpCards implements sessions.Cards.
func (s *Cards) GivenUpCards(ctx context.Context) (int, error) {
	n, err := s.db.Q.CardsGivenUp(ctx, s.db.Pool)
	if err != nil {
		return 0, fmt.Errorf("counting cards that were given up: %w", err)
	}
	return int(n), nil
}

// ClickedCard implements sessions.Cards.
func (s *Cards) ClickedCard(ctx context.Context, track string, by sessions.UserID) (sessions.Clicked, error) {
	r, err := s.db.Q.CardClicked(ctx, s.db.Pool, &dbsqlc.CardClickedParams{OutTrackID: pg.Clean(track), Person: pg.Clean(string(by))})
	if err != nil {
		return sessions.Clicked{}, fmt.Errorf("looking for card %s: %w", track, pg.AsNotFound(err))
	}
	return sessions.Clicked{
		Card: sessions.Card{
			Key: r.Card.SessionKey, Kind: sessions.CardKind(r.Card.Kind), Track: r.Card.OutTrackID, EventID: r.Card.TurnEventID, Prepaid: r.Card.Prepaid,
			CreatedAt: r.Card.CreatedAt,
		},
		State: sessions.CardState(r.Card.State), Rating: sessions.Rating(r.Card.Rating), Asked: r.Asked, Shared: r.Shared, Running: r.Running, Words: r.Words, Nick: r.Nick,
		Message: sessions.Message{
			RobotCode: r.RobotCode, ConversationID: r.ConversationID, ConversationType: r.ConversationType, ConversationTitle: r.Title, Organization: r.Organization, Kind: "text",
		},
	}, nil
}

// RateCard implements sessions.Cards.
func (s *Cards) RateCard(ctx context.Context, key sessions.Key, track string, r sessions.Rating) (bool, error) {
	n, err := s.db.Q.CardRate(ctx, s.db.Pool, &dbsqlc.CardRateParams{SessionKey: key, OutTrackID: track, Rating: string(r)})
	if err != nil {
		return false, fmt.Errorf("rating card %s: %w", track, err)
	}
	return n == 1, nil
}
