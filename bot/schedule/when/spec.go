package when

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Spec is a time, or a repetition of times in a zone. Specs are equal by == if they mean the same. The zero Spec is
// never due.
type Spec struct {
	kind  kind
	at    int64  // Unix time of the only due time, or of an interval's first one
	zone  string // for [loadZone]
	cron  string // canonical
	every int    // length of an interval, in units
	unit  unit
}

type kind uint8

const (
	never kind = iota
	once
	byCron
	byInterval
)

// unit is a unit of intervals and distances.
type unit string

const (
	seconds unit = "s"
	minutes unit = "m"
	hours   unit = "h"
	days    unit = "d"
	weeks   unit = "w"
	months  unit = "month" // a unit of distances and phrases only
	years   unit = "year"
)

// secondsOf is the length of a unit, on the wall clock for days and weeks.
var secondsOf = map[unit]int64{seconds: 1, minutes: 60, hours: 3600, days: 86400, weeks: 7 * 86400}

// byCalendar reports whether an interval counts on the wall clock, on which each day has 24 hours.
func (u unit) byCalendar() bool { return u == days || u == weeks }

// maxYears bounds times ahead and intervals.
const maxYears = 5

// newOnce rounds up to a second: nothing is due before its time.
func newOnce(t time.Time) Spec {
	at := t.Unix()
	if t.Nanosecond() > 0 {
		at++
	}
	return Spec{kind: once, at: at, zone: t.Format("-07:00")}
}

func newInterval(first time.Time, every int, unit unit) Spec {
	s := newOnce(first)
	return Spec{kind: byInterval, at: s.at, zone: zoneName(first), every: every, unit: unit}
}

// newCron accepts expressions that are due at all.
func newCron(expr, zone string) (Spec, error) {
	c, canonical, err := parseCron(expr)
	if err != nil {
		return Spec{}, err
	}
	if _, err := loadZone(zone); err != nil {
		return Spec{}, err
	}
	if _, ok := c.next(time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)); !ok {
		return Spec{}, fmt.Errorf("%w: no day matches", errCron)
	}
	return Spec{kind: byCron, cron: canonical, zone: zone}, nil
}

// Repeats reports whether a spec can be due more than once.
func (s Spec) Repeats() bool { return s.kind == byCron || s.kind == byInterval }

// String returns the stored form of a spec, which [Read] reads. A single time is an instant as in RFC 3339. A repetition is a
// cron expression with its zone or an interval with its first time and zone: "CRON_TZ=Asia/Shanghai 0 9 * * 5",
// "every 30m from 2026-11-23T14:30:00+08:00 Asia/Shanghai". The zero Spec is "".
func (s Spec) String() string {
	switch s.kind {
	case once:
		return s.first().Format(time.RFC3339)
	case byCron:
		return "CRON_TZ=" + s.zone + " " + s.cron
	case byInterval:
		return fmt.Sprintf("every %d%s from %s %s", s.every, s.unit, s.first().Format(time.RFC3339), s.zone)
	default:
		return ""
	}
}

var intervalRE = regexp.MustCompile(`^every ([1-9][0-9]{0,8})([smhdw]) from (\S+) (\S+)$`)

// Read returns the spec of a stored form. It accepts only what [Spec.String] writes.
func Read(stored string) (Spec, error) {
	s, err := read(stored)
	if err == nil && s.String() != stored {
		err = errors.New("not in the stored form")
	}
	if err != nil {
		return Spec{}, fmt.Errorf("read a stored schedule: %w", err)
	}
	return s, nil
}

// read accepts the three forms that String writes, and nothing else: a row that was changed by hand is an error, and no reminder at a
// wrong time.
func read(stored string) (Spec, error) {
	if rest, ok := strings.CutPrefix(stored, "CRON_TZ="); ok {
		zone, expr, _ := strings.Cut(rest, " ")
		return newCron(expr, zone)
	}
	if m := intervalRE.FindStringSubmatch(stored); m != nil {
		every, err := strconv.Atoi(m[1])
		if err != nil {
			return Spec{}, fmt.Errorf("length of the interval: %w", err)
		}
		first, err := time.Parse(time.RFC3339, m[3])
		if err != nil {
			return Spec{}, fmt.Errorf("first time: %w", err)
		}
		if _, err := loadZone(m[4]); err != nil {
			return Spec{}, err
		}
		s := Spec{kind: byInterval, at: first.Unix(), zone: m[4], every: every, unit: unit(m[2])}
		if s.length() > maxYears*366*secondsOf[days] {
			return Spec{}, errors.New("the interval is too long")
		}
		return s, nil
	}
	t, err := time.Parse(time.RFC3339, stored)
	if err != nil {
		return Spec{}, errors.New("neither an instant nor a repetition")
	}
	return newOnce(t), nil
}

// Clock returns the zone on whose clock a repetition is due. It returns false for times that no clock decides.
func (s Spec) Clock() (zone *time.Location, ok bool) {
	return s.location(), s.kind == byCron || s.kind == byInterval && s.unit.byCalendar()
}

// location is known: each spec was made with a zone that could be loaded.
func (s Spec) location() *time.Location {
	zone, err := loadZone(s.zone)
	if err != nil {
		return time.UTC
	}
	return zone
}

// first is the only time, or the first time of an interval.
func (s Spec) first() time.Time { return time.Unix(s.at, 0).In(s.location()) }

// length is the length of an interval in seconds.
func (s Spec) length() int64 { return int64(s.every) * secondsOf[s.unit] }

// Next returns the first due time strictly after a time, in the zone of the spec. It returns false if there is none.
func (s Spec) Next(after time.Time) (time.Time, bool) {
	switch s.kind {
	case once:
		t := s.first()
		return t, t.After(after)
	case byCron:
		c, _, err := parseCron(s.cron)
		if err != nil {
			return time.Time{}, false
		}
		return nextOnWallClock(after, s.location(), c.next)
	case byInterval:
		return s.nextOfInterval(after)
	default:
		return time.Time{}, false
	}
}

func (s Spec) nextOfInterval(after time.Time) (time.Time, bool) {
	first := s.first()
	if first.After(after) {
		return first, true
	}
	if !s.unit.byCalendar() {
		n := (after.Unix()-s.at)/s.length() + 1
		return time.Unix(s.at+n*s.length(), 0).In(first.Location()), true
	}
	return nextOnWallClock(after, first.Location(), func(from time.Time) (time.Time, bool) {
		start := wallClock(first)
		n := max(0, (from.Unix()-start.Unix()-1)/s.length())
		t := time.Unix(start.Unix()+n*s.length(), 0).UTC()
		for t.Before(from) {
			t = t.Add(time.Duration(s.length()) * time.Second)
		}
		return t, true
	})
}

// nextOnWallClock returns the first instant after a time of those that next finds on the wall clock. A time in a gap
// counts at the end of the gap, and a time that is shown twice counts at the first of them.
func nextOnWallClock(after time.Time, zone *time.Location, next func(from time.Time) (time.Time, bool)) (time.Time, bool) {
	from := wallClock(after.In(zone))
	for {
		wall, ok := next(from)
		if !ok {
			return time.Time{}, false
		}
		if t, _ := instants(wall, zone); t.After(after) {
			return t, true
		}
		from = wall.Add(time.Nanosecond)
	}
}

// check applies the limits of times ahead.
func check(s Spec, now time.Time) (Spec, error) {
	next, ok := s.Next(now)
	switch {
	case !ok && s.kind == once:
		return Spec{}, ErrPast
	case !ok || next.After(now.AddDate(maxYears, 0, 0)):
		return Spec{}, ErrFar
	case s.kind == once && next.Before(now.Add(time.Second)):
		return Spec{}, ErrSoon
	}
	return s, nil
}
