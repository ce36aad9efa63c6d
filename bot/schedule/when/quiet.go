package when

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// Quiet is a stretch of each day in which nothing is sent, in any zone. The zero Quiet is never.
type Quiet struct{ from, to int } // minutes of the day; to is not included

var quietRE = regexp.MustCompile(`^([01]?[0-9]|2[0-3]):([0-5][0-9])\s*[-–~]\s*([01]?[0-9]|2[0-4]):([0-5][0-9])$`)

// ParseQuiet reads hours such as "22:00-08:00", which may span midnight. Empty text means never.
func ParseQuiet(text string) (Quiet, error) {
	if text == "" {
		return Quiet{}, nil
	}
	m := quietRE.FindStringSubmatch(text)
	if m == nil {
		return Quiet{}, fmt.Errorf("hours %.20q are not of the form 22:00-08:00", text)
	}
	var minutes [4]int
	for i := range minutes {
		minutes[i], _ = strconv.Atoi(m[i+1]) // two digits
	}
	q := Quiet{minutes[0]*60 + minutes[1], minutes[2]*60 + minutes[3]}
	if q.to > 24*60 || q.from == q.to%(24*60) {
		return Quiet{}, fmt.Errorf("hours %.20q have no end", text)
	}
	return q, nil
}

// End returns the end of the quiet hours around t, in t's zone. It returns false if t is outside them.
func (q Quiet) End(t time.Time) (time.Time, bool) {
	now := t.Hour()*60 + t.Minute()
	within := q.from <= now && now < q.to
	if q.from > q.to {
		within = q.from <= now || now < q.to
	}
	if !within {
		return time.Time{}, false
	}
	day := t.Day()
	if q.to <= now {
		day++
	}
	first, last := instants(time.Date(t.Year(), t.Month(), day, 0, q.to, 0, 0, time.UTC), t.Location())
	if !first.After(t) { // The hour before a change back from summer time is shown again.
		first = last
	}
	return first, true
}
