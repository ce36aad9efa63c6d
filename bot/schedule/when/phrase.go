package when

import (
	"fmt"
	"time"

	"ebb/memory/dates"
)

// phrase is the parts of a time. Together they mean a Spec.
type phrase struct {
	every *repetition
	day   *dates.Mention
	away  *distance
	part  string // a key of dayParts
	clock *clockTime
	hours uint32 // further hours of a repetition at the same minute, as bits
}

// hasHour reports whether a phrase needs no time of the day.
func (w *phrase) hasHour() bool {
	return w.clock != nil || w.away != nil && !w.away.byCalendar() || w.every != nil && w.every.unit == seconds
}

func (w *phrase) hasDay() bool { return w.day != nil || w.every != nil || w.away != nil }

// contradicts reports whether the time of the day is not in the part of the day that is named.
func (w *phrase) contradicts() bool {
	part, named := dayParts[w.part]
	return named && w.clock != nil && part.contradicts(*w.clock)
}

// placeOfNow gives "at the same time" its day, which is today's in another week, month or year. It returns false without a day.
func (w *phrase) placeOfNow(now time.Time) bool {
	switch {
	case w.clock == nil || !w.clock.ofNow:
		return true
	case w.part != "" && !dayParts[w.part].holds(now.Hour()):
		return false
	case w.day == nil || w.day.OneDay():
		return w.day != nil || w.every != nil || w.away != nil
	}
	day, ok := dayOfToday(*w.day, now)
	w.day = &day
	return ok
}

// spec returns the times that a phrase means, within the limits.
func (w *phrase) spec(wall, now time.Time) (Spec, error) {
	switch {
	case w.every != nil:
		return w.repeating(wall, now)
	case w.away != nil:
		return w.distant(wall, now)
	}
	t, err := w.next(wall, now)
	if err != nil {
		return Spec{}, err
	}
	first, _ := instants(t, now.Location())
	return check(newOnce(first), now)
}

// distant is the time of a distance.
func (w *phrase) distant(wall, now time.Time) (Spec, error) {
	switch {
	case w.away.tooFar():
		return Spec{}, ErrFar
	case *w.away == (distance{}): // also half a second
		return Spec{}, ErrSoon
	}
	day := w.away.day(wall)
	if w.clock != nil || w.part != "" {
		if !w.away.byCalendar() {
			return Spec{}, ErrUnknown
		}
		day = w.timeOf(day)
	}
	t := now
	if w.away.days+w.away.workdays+w.away.months > 0 {
		t, _ = instants(day, now.Location())
	}
	return check(newOnce(t.Add(time.Duration(w.away.seconds)*time.Second)), now)
}

// timeOf returns the time of a phrase on a named day.
func (w *phrase) timeOf(day time.Time) time.Time {
	c := w.timeOfDay()
	return c.on(day, c.hour)
}

// timeOfDay returns the time of the day that a phrase means where its day is named. Its hour is 24 or more behind midnight.
func (w *phrase) timeOfDay() clockTime {
	switch part, named := dayParts[w.part]; {
	case w.clock != nil && named:
		c := *w.clock
		c.hour = c.hourIn(w.part)
		return c
	case named:
		return clockTime{hour: part.alone}
	case w.clock == nil:
		return clockTime{hour: morning.alone}
	case !w.clock.exact && w.clock.hour < 6:
		c := *w.clock
		c.hour += 12
		return c
	}
	return *w.clock
}

// next returns the next time of a phrase without a distance or a repetition, on the wall clock.
func (w *phrase) next(wall, now time.Time) (time.Time, error) {
	ahead := func(t time.Time) bool {
		first, _ := instants(t, now.Location())
		return first.After(now)
	}
	today := time.Date(wall.Year(), wall.Month(), wall.Day(), 0, 0, 0, 0, time.UTC)
	if w.day == nil {
		for n := -1; n <= 2; n++ { // yesterday's evening may last until after midnight
			for _, t := range w.times(today.AddDate(0, 0, n), wall) {
				if ahead(t) {
					return t, nil
				}
			}
		}
		return time.Time{}, ErrPast
	}
	for range 2 {
		for day := w.day.From; day.Before(w.day.To); day = day.AddDate(0, 0, 1) {
			times := []time.Time{w.timeOf(day)}
			if !w.day.Recurs && day.Equal(today) {
				times = w.times(day, wall)
			}
			for _, t := range times {
				if ahead(t) {
					return t, nil
				}
			}
		}
		later, ok := dates.Ahead(w.day.Words, today.AddDate(0, 0, 1))
		if !w.day.Recurs || !ok {
			break
		}
		w.day = &later
	}
	return time.Time{}, ErrPast
}

// times lists the times that a phrase may mean on a day, if its day is not named or is today.
func (w *phrase) times(day, wall time.Time) []time.Time {
	isToday := day.Year() == wall.Year() && day.YearDay() == wall.YearDay()
	switch {
	case w.part != "" || w.clock != nil && w.clock.exact:
		return []time.Time{w.timeOf(day)}
	case w.clock == nil && !isToday:
		return []time.Time{w.timeOf(day)}
	case w.clock == nil:
		var times []time.Time
		for _, part := range []dayPart{morning, afternoon, evening} {
			times = append(times, day.Add(time.Duration(part.alone)*time.Hour))
		}
		return times
	case !isToday:
		return []time.Time{w.timeOf(day)}
	}
	c := *w.clock
	var times []time.Time
	if c.hour >= 6 || wall.Hour() < 6 {
		times = append(times, c.on(day, c.hour))
	}
	if c.hour < 12 {
		times = append(times, c.on(day, c.hour+12))
	}
	return times
}

// repeating is the spec of a repetition.
func (w *phrase) repeating(wall, now time.Time) (Spec, error) {
	r := *w.every
	if r.unit == seconds {
		if w.clock != nil || w.part != "" {
			return Spec{}, ErrUnsupported
		}
		return r.interval(now)
	}
	c := w.timeOfDay()
	if c.second > 0 {
		return Spec{}, ErrUnsupported
	}
	if w.hours != 0 && (c.hour >= 24 || r.every > 1 && r.unit != months) {
		return Spec{}, ErrUnsupported
	}
	if c.hour >= 24 {
		c.hour -= 24
		if !r.shift() {
			return Spec{}, ErrUnsupported
		}
	}
	r.complete(wall)
	if r.every > 1 && r.unit != months {
		return r.onWallClock(c, wall, now)
	}
	day, month, weekday, ok := r.fields(wall)
	if !ok {
		return Spec{}, ErrUnsupported
	}
	hours := listOf(w.hours | 1<<c.hour)
	spec, err := newCron(fmt.Sprintf("%d %s %s %s %s", c.minute, hours, day, month, weekday), zoneName(now))
	if err != nil {
		return Spec{}, ErrUnsupported
	}
	return check(spec, now)
}
