package facts

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"ebb/memory"
	"ebb/memory/text"
	"ebb/sessions"
	"ebb/sql/convert"
	"ebb/sql/dbsqlc"
	"ebb/sql/index"
	"ebb/sql/pg"
	"ebb/sql/spend"
)

// digestPortion is the number of days of one statement. Finding that many takes as long as reading a thousand.
const digestPortion = 1000

// Digests keeps the daily digests.
type Digests struct{ db *pg.DB }

// NewDigests returns the digests of a database.
func NewDigests(db *pg.DB) *Digests { return &Digests{db} }

// DigestsDue implements memory.Digests. It returns all due days of one portion, so that none is counted twice.
func (s *Digests) DigestsDue(
	ctx context.Context, owner sessions.ReplicaID, days []memory.Day, after memory.DigestDue,
) ([]memory.DigestDue, error) {
	p := &dbsqlc.DigestsDueParams{
		MaxAttempts: memory.DigestAttempts, RestSeconds: memory.DigestRest.Seconds(),
		Owner: string(owner), TtlSeconds: s.db.TTL.Seconds(), MaxRows: digestPortion,
		AfterDay: pgtype.Date{InfinityModifier: pgtype.NegativeInfinity, Valid: true}, AfterKey: string(after.Key),
	}
	of := map[string]memory.Day{}
	for _, d := range days {
		date, err := dateOf(d.Date)
		if err != nil {
			return nil, err
		}
		of[d.Date] = d
		p.Days, p.Starts, p.Ends = append(p.Days, date), append(p.Starts, d.From), append(p.Ends, d.To)
	}
	var err error
	if after.Date != "" {
		if p.AfterDay, err = dateOf(after.Date); err != nil {
			return nil, err
		}
	}
	for more := len(days) > 0; more; {
		rows, err := s.db.Q.DigestsDue(ctx, s.db.Pool, p)
		if err != nil {
			return nil, fmt.Errorf("listing %d days without a digest: %w", len(days), err)
		}
		due, err := s.busyDays(ctx, rows, of)
		if err != nil || len(due) > 0 {
			return due, err
		}
		if more = len(rows) == digestPortion; more {
			last := rows[len(rows)-1]
			if p.AfterDay, err = dateOf(last.Date); err != nil {
				return nil, err
			}
			p.AfterKey = string(last.SessionKey)
		}
	}
	return nil, nil
}

// busyDays settles the days with few messages, and returns all others.
func (s *Digests) busyDays(ctx context.Context, rows []dbsqlc.DigestsDueRow, of map[string]memory.Day) ([]memory.DigestDue, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	asked := make([]*dbsqlc.DigestCountParams, len(rows))
	for i, r := range rows {
		asked[i] = &dbsqlc.DigestCountParams{SessionKey: r.SessionKey, StartsAt: of[r.Date].From, EndsAt: of[r.Date].To, Erased: sessions.ErasedText}
	}
	var due []memory.DigestDue
	var quiet []*dbsqlc.DigestQuietParams
	if err := pg.Done(func(take func(int, error)) {
		s.db.Q.DigestCount(ctx, s.db.Pool, asked).QueryRow(func(i int, c dbsqlc.DigestCountRow, err error) {
			take(i, err)
			r := rows[i]
			if c.Messages >= memory.DigestLeast {
				due = append(due, memory.DigestDue{Key: r.SessionKey, Day: of[r.Date], FirstSeq: c.FirstSeq, LastSeq: c.LastSeq, Attempts: r.Attempts})
				return
			}
			date, err := dateOf(r.Date)
			take(i, err)
			quiet = append(quiet, &dbsqlc.DigestQuietParams{SessionKey: r.SessionKey, Day: date})
		})
	}); err != nil {
		return nil, fmt.Errorf("counting the messages of %d days: %w", len(rows), err)
	}
	if len(quiet) > 0 {
		if err := pg.Done(s.db.Q.DigestQuiet(ctx, s.db.Pool, quiet).Exec); err != nil {
			return nil, fmt.Errorf("settling %d quiet days: %w", len(quiet), err)
		}
	}
	return due, nil
}

func dateOf(date string) (pgtype.Date, error) {
	t, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return pgtype.Date{}, fmt.Errorf("reading the date of a digest: %w", err)
	}
	return pgtype.Date{Time: t, Valid: true}, nil
}

// DigestEvents implements memory.Digests.
func (s *Digests) DigestEvents(
	ctx context.Context, d memory.DigestDue, after int64, limit int,
) ([]sessions.Event, error) {
	rows, err := s.db.Q.DigestEvents(ctx, s.db.Pool, &dbsqlc.DigestEventsParams{
		SessionKey: d.Key, AfterSeq: max(after, d.FirstSeq-1), ThroughSeq: d.LastSeq, StartsAt: d.From, EndsAt: d.To,
		Erased: sessions.ErasedText, MaxRows: pg.Clamp(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("reading the events of %s after %d: %w", d.Date, after, err)
	}
	events := make([]sessions.Event, 0, len(rows))
	for _, r := range rows {
		e, err := convert.Event(sessions.Event{
			ID: r.ID, Seq: pg.OrZero(r.Seq), Key: d.Key, Role: r.Role, Content: r.Content, SenderID: r.SenderID, SenderNick: r.SenderNick,
			MsgID: pg.OrZero(r.MsgID), Tokens: r.Tokens, State: sessions.Done, CreatedAt: r.CreatedAt,
		}, convert.EventJSON{Message: r.Message, Withheld: r.Withheld})
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

// StoreDigest implements memory.Digests. The day's row decides under the session's lock: the second of two concurrent
// writers finds the day settled and changes nothing.
func (s *Digests) StoreDigest(ctx context.Context, l sessions.Lease, d memory.Digest) (int64, error) {
	var id int64
	err := s.db.WithLease(ctx, l, func(tx pgx.Tx, row *dbsqlc.Session) (err error) {
		done := &dbsqlc.DigestDoneParams{SessionKey: l.Key}
		if done.Day, err = dateOf(d.Date); err != nil {
			return err
		}
		if d.StartSeq > d.EndSeq || d.EndSeq > row.LastSeq {
			return sessions.ErrConflict
		}
		if d.Content = pg.Clean(d.Content); d.Content != "" {
			// Two days may have the same text, so the date is a part of the hash.
			sum := sha256.Sum256(fmt.Appendf(nil, "digest\x00%s\x00%s\x00%s", l.Key, d.Date, text.Normalize(d.Content)))
			if id, err = s.db.Q.DigestInsert(ctx, tx, &dbsqlc.DigestInsertParams{
				Scope: d.Scope, ScopeID: pg.Clean(d.ScopeID), Kind: memory.KindDigest, Content: d.Content, NormHash: sum[:],
				SourceSession: l.Key, SourceGroup: pg.Clean(d.SourceGroup), At: d.At, StartSeq: d.StartSeq, EndSeq: d.EndSeq,
				Terms: index.MemoryTerms(d.Scope, pg.Clean(d.ScopeID), d.Content),
			}); err != nil {
				return err
			}
			done.MemoryID = &id
		}
		n, err := s.db.Q.DigestDone(ctx, tx, done)
		if err := pg.Require(n, err, sessions.ErrConflict); err != nil {
			return err
		}
		if err := s.db.Q.UpkeepDone(ctx, tx, l.Key); err != nil {
			return err
		}
		return spend.Add(ctx, tx, s.db, l.Key, sessions.Spending{Kind: sessions.SpentDigest, Usage: d.Usage, Cost: d.Cost, Model: d.Model})
	})
	if err != nil {
		return 0, fmt.Errorf("storing the digest of %s: %w", d.Date, pg.AsRefused(err))
	}
	return id, nil
}

// PutOffDigest implements memory.Digests.
func (s *Digests) PutOffDigest(ctx context.Context, l sessions.Lease, f memory.DigestFailure) error {
	err := s.db.WithLease(ctx, l, func(tx pgx.Tx, _ *dbsqlc.Session) error {
		p := &dbsqlc.DigestPutOffParams{SessionKey: l.Key, Error: pg.Clean(f.Reason)}
		if f.Counts {
			p.Attempts = 1
		}
		var err error
		if p.Day, err = dateOf(f.Date); err != nil {
			return err
		}
		if err := s.db.Q.DigestPutOff(ctx, tx, p); err != nil {
			return err
		}
		return spend.Add(ctx, tx, s.db, l.Key, sessions.Spending{Kind: sessions.SpentDigest, Usage: f.Usage, Cost: f.Cost, Model: f.Model})
	})
	if err != nil {
		return fmt.Errorf("putting off the digest of %s: %w", f.Date, pg.AsRefused(err))
	}
	return nil
}

const maxDigests = 100

// DigestsOf implements memory.Digests.
func (s *Digests) DigestsOf(ctx context.Context, r memory.Reader, from, to time.Time) ([]memory.Memory, error) {
	rows, err := s.db.Q.DigestsReadable(ctx, s.db.Pool, &dbsqlc.DigestsReadableParams{
		GroupID: memory.GroupID(r.Robot, r.Conversation), SessionKey: string(r.Key), StartsAt: from, EndsAt: to, MaxRows: maxDigests, Model: string(r.Reads),
	})
	if err != nil {
		return nil, fmt.Errorf("listing digests: %w", err)
	}
	digests := make([]memory.Memory, 0, len(rows))
	for _, m := range rows {
		digests = append(digests, memory.Memory{
			ID: m.ID, Scope: m.Scope, ScopeID: m.ScopeID, Kind: m.Kind, Content: m.Content, SourceSession: m.SourceSession,
			SourceGroup: m.SourceGroup, StartSeq: m.StartSeq, EndSeq: m.EndSeq, CreatedAt: m.CreatedAt,
		})
	}
	return digests, nil
}
