package when

import (
	"fmt"
	"sync"
	"time"
)

// Times of the calendar are computed on a wall clock without a zone, which is a time.Time in UTC. So a change to summer
// time matters only where such a time becomes an instant.

// wallClock returns what clocks in t's zone show at t.
func wallClock(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// instants returns the first and the last instant at which clocks of a zone show a time. Both are the end of the gap if
// the zone skips it.
func instants(wall time.Time, zone *time.Location) (first, last time.Time) {
	t := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), wall.Nanosecond(), zone)
	from, to := t.ZoneBounds()
	if shown := wallClock(t); shown.Before(wall) && !to.IsZero() {
		return to, to
	} else if shown.After(wall) {
		return from, from
	}
	first, last = t, t
	if !from.IsZero() {
		if other := t.Add(offset(t) - offset(from.Add(-1))); other.Before(from) && wallClock(other).Equal(wall) {
			first = other
		}
	}
	if !to.IsZero() {
		if other := t.Add(offset(t) - offset(to)); !other.Before(to) && wallClock(other).Equal(wall) {
			last = other
		}
	}
	return first, last
}

// offset is the difference of a zone's clocks from UTC at t.
func offset(t time.Time) time.Duration {
	_, seconds := t.Zone()
	return time.Duration(seconds) * time.Second
}

// zones holds the zones that were loaded by name: each load reads a file.
var zones sync.Map

// loadZone returns a zone by its name in the zone database, or by an offset such as +08:00.
func loadZone(name string) (*time.Location, error) {
	loaded, _ := zones.Load(name)
	if zone, ok := loaded.(*time.Location); ok {
		return zone, nil
	}
	if t, err := time.Parse("-07:00", name); err == nil {
		return time.FixedZone("", int(offset(t)/time.Second)), nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" {
		return nil, fmt.Errorf("unknown time zone %.40q", name)
	}
	zones.Store(name, zone)
	return zone, nil
}

// zoneName names t's zone for [loadZone]. A zone without a name in the database counts by its offset at t.
func zoneName(t time.Time) string {
	name := t.Location().String()
	if zone, err := loadZone(name); err == nil && offset(t.In(zone)) == offset(t) {
		return name
	}
	return t.Format("-07:00")
}
