package limits

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// dayKey is the key of a day's hashes. Windows have no names of people, and their hashes name no person after the day: the key is
// deleted then.
type dayKey struct {
	key    []byte
	day    time.Time // its begin, in UTC
	ends   time.Time
	before []byte        // key of the day before, which that day's last windows still have; nil without one
	since  time.Duration // since the begin of the day
}

const keySize = 32

// yesterday is the key of the windows that began on the day before and may be running. They last up to [longest].
func (k dayKey) yesterday(lasts time.Duration) (dayKey, bool) {
	return dayKey{key: k.before, day: k.day.AddDate(0, 0, -1), ends: k.day}, k.before != nil && k.since < lasts
}

// longest is the longest window that ends on no day's end.
const longest = time.Hour

// subject is the key of a window.
func (k dayKey) subject(kind string, robot sessions.RobotCode, id string) []byte {
	return Hash(k.key, kind, string(robot), id)
}

// Hash names a person or a group for one use, in 32 bytes, under the key of a day, see [KeyOf]. The first part is the use.
func Hash(key []byte, parts ...string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(strings.Join(parts, "\x00")))
	return h.Sum(nil)
}

// shareSubject is a person's name in the window of a group.
func (k dayKey) shareSubject(robot sessions.RobotCode, person sessions.UserID) string {
	const size = 8 // bytes: a group has few people
	return hex.EncodeToString(k.subject("part", robot, string(person))[:size])
}

// dayKeys reads the key of a day once.
type dayKeys struct {
	db *pg.DB

	mu   sync.Mutex
	last dayKey
}

func (d *dayKeys) today(ctx context.Context) (dayKey, error) {
	now := d.db.Clock.Now().UTC()
	day := now.Truncate(24 * time.Hour)
	d.mu.Lock()
	last := d.last
	d.mu.Unlock()
	if last.since = now.Sub(day); last.key != nil && last.day.Equal(day) {
		return last, nil
	}
	k := dayKey{day: day, ends: day.Add(24 * time.Hour), since: last.since}
	if err := d.read(ctx, &k); err != nil {
		return k, fmt.Errorf("reading the key of a day: %w", err)
	}
	if k.since < longest {
		before, err := d.db.Q.LimitsKey(ctx, d.db.Pool, dateOf(day.AddDate(0, 0, -1)))
		if err != nil {
			return k, fmt.Errorf("reading the key of the day before: %w", err)
		}
		k.before = slices.Concat(before...)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = k
	return k, nil
}

// KeyOf is the key of a day in UTC, which is deleted after it.
func KeyOf(ctx context.Context, db *pg.DB, day time.Time) ([]byte, error) {
	k := dayKey{day: day}
	if err := (&dayKeys{db: db}).read(ctx, &k); err != nil {
		return nil, fmt.Errorf("reading the key of a day: %w", err)
	}
	return k.key, nil
}

// read makes the key where no replica has.
func (d *dayKeys) read(ctx context.Context, k *dayKey) error {
	date := dateOf(k.day)
	keys, err := d.db.Q.LimitsKey(ctx, d.db.Pool, date)
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		fresh := make([]byte, keySize)
		_, _ = rand.Read(fresh) // it never fails
		if err := d.db.Q.LimitsKeyAdd(ctx, d.db.Pool, &dbsqlc.LimitsKeyAddParams{Day: date, Key: fresh}); err != nil {
			return err
		}
		if keys, err = d.db.Q.LimitsKey(ctx, d.db.Pool, date); err != nil {
			return err
		}
	}
	if len(keys) == 0 {
		return errKeyGone
	}
	k.key = keys[0]
	return nil
}

func dateOf(day time.Time) pgtype.Date { return pgtype.Date{Time: day, Valid: true} }

var errKeyGone = fmt.Errorf("the key was deleted: %w", sessions.ErrNotFound)
