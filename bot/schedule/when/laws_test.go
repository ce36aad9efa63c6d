package when

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// drawNow draws a time between 2020 and 2030.
func drawNow(t *rapid.T, loc *time.Location) time.Time {
	return time.Unix(rapid.Int64Range(1_577_900_000, 1_893_400_000).Draw(t, "now"), 0).In(loc)
}

// exactHour draws an hour that is exact with two figures: 10 and 11 may be those of the evening.
func exactHour() *rapid.Generator[int] {
	return rapid.IntRange(0, 23).Filter(func(hour int) bool { return hour != 10 && hour != 11 })
}

// due reads a phrase with a text behind it, and returns its next times.
func due(t *rapid.T, phrase string, now time.Time, n int) []time.Time {
	spec, rest, err := Parse(phrase+" drink", now)
	if err != nil || rest != "drink" {
		t.Fatalf("%q at %s: %v, rest %q", phrase, now, err, rest)
	}
	var times []time.Time
	for at := now; len(times) < n; times = append(times, at) {
		var ok bool
		if at, ok = spec.Next(at); !ok {
			t.Fatalf("%q at %s is due %d times only", phrase, now, len(times))
		}
	}
	return times
}

// An exact time of the day is the next one on the clock. An hour of a clock's face is the next of its two.
func TestTimeWithoutADayIsTheNext(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := drawNow(t, zone(t, "Asia/Shanghai"))
		hour, minute := exactHour().Draw(t, "hour"), rapid.IntRange(0, 59).Draw(t, "minute")
		clock := fmt.Sprintf("%02d:%02d", hour, minute)
		for _, phrase := range []string{clock, "at " + clock} {
			at := due(t, phrase, now, 1)[0]
			if at.Format("15:04:05") != clock+":00" || at.Sub(now) > 24*time.Hour {
				t.Errorf("%s at %s is due at %s", phrase, now, at)
			}
		}
		face := rapid.IntRange(6, 11).Draw(t, "hour of the face")
		at := due(t, fmt.Sprintf("%d点", face), now, 1)[0]
		if at.Hour()%12 != face || at.Minute() != 0 || at.Sub(now) > 12*time.Hour {
			t.Errorf("%d点 at %s is due at %s", face, now, at)
		}
	})
}

// A weekday is the next one with its time still ahead, at most a week away, in both languages.
func TestWeekdayIsTheNext(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := drawNow(t, zone(t, "Asia/Shanghai"))
		day := time.Weekday(rapid.IntRange(0, 6).Draw(t, "weekday"))
		clock := fmt.Sprintf("%02d:%02d", exactHour().Draw(t, "hour"), rapid.IntRange(0, 59).Draw(t, "minute"))
		for _, phrase := range []string{fmt.Sprintf("every %s at %s", day, clock), "每" + chineseWords.weekdays[day] + clock} {
			times := due(t, phrase, now, 3)
			if times[0].Sub(now) > 7*24*time.Hour {
				t.Errorf("%s at %s begins at %s", phrase, now, times[0])
			}
			for i, at := range times {
				if at.Weekday() != day || at.Format("15:04") != clock || !at.Equal(times[0].AddDate(0, 0, 7*i)) {
					t.Errorf("%s at %s is due at %s", phrase, now, times)
				}
			}
		}
	})
}

// A distance in hours or less counts seconds. One in days keeps the time of the clock, also over a change to or from summer time.
func TestDistances(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := drawNow(t, zone(t, rapid.SampledFrom([]string{"Asia/Shanghai", "America/New_York"}).Draw(t, "zone")))
		n := rapid.IntRange(2, 90).Draw(t, "n")
		for _, u := range []struct {
			zh, en string
			length time.Duration
		}{{"秒", "seconds", time.Second}, {"分钟", "minutes", time.Minute}, {"小时", "hours", time.Hour}} {
			for _, phrase := range []string{fmt.Sprintf("%d%s后", n, u.zh), fmt.Sprintf("in %d %s", n, u.en)} {
				if at := due(t, phrase, now, 1)[0]; !at.Equal(now.Add(time.Duration(n) * u.length)) {
					t.Errorf("%s at %s is due at %s", phrase, now, at)
				}
			}
		}
		wall := wallClock(now).AddDate(0, 0, n)
		first, _ := instants(wall, now.Location())
		for _, phrase := range []string{fmt.Sprintf("%d天后", n), fmt.Sprintf("in %d days", n)} {
			if at := due(t, phrase, now, 1)[0]; !at.Equal(first) {
				t.Errorf("%s at %s is due at %s, want %s", phrase, now, at, first)
			}
		}
	})
}

// A repetition by hours or minutes counts from now, whatever clocks show.
func TestRepetitionsByHoursCountFromNow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := drawNow(t, zone(t, "America/New_York"))
		n := rapid.IntRange(2, 100).Draw(t, "n")
		for phrase, length := range map[string]time.Duration{
			fmt.Sprintf("每%d分钟", n): time.Minute, fmt.Sprintf("every %d minutes", n): time.Minute,
			fmt.Sprintf("每%d小时", n): time.Hour, fmt.Sprintf("every %d hours", n): time.Hour,
		} {
			for i, at := range due(t, phrase, now, 4) {
				if want := now.Add(time.Duration(i+1) * time.Duration(n) * length); !at.Equal(want) {
					t.Errorf("%s at %s is due at %s, want %s", phrase, now, at, want)
				}
			}
		}
	})
}

// Day 31 of each month is its last day. Other days are due in the months that have them, and in no other one.
func TestDaysOfTheMonth(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := drawNow(t, zone(t, "Asia/Shanghai"))
		day := rapid.IntRange(1, 31).Draw(t, "day")
		want := now.AddDate(0, 0, -1)
		for _, at := range due(t, fmt.Sprintf("每月%d号9点", day), now, 14) {
			for want = want.AddDate(0, 0, 1); ; want = want.AddDate(0, 0, 1) {
				last := want.AddDate(0, 0, 1).Day() == 1
				want = time.Date(want.Year(), want.Month(), want.Day(), 9, 0, 0, 0, want.Location())
				if (want.Day() == day || day == 31 && last) && want.After(now) {
					break
				}
			}
			if !at.Equal(want) {
				t.Fatalf("每月%d号9点 at %s is due at %s, want %s", day, now, at, want)
			}
		}
	})
}

// Working days are Monday to Friday: as many of them are passed as the phrase says.
func TestWorkingDays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := drawNow(t, zone(t, "Asia/Shanghai"))
		n := rapid.IntRange(1, 60).Draw(t, "n")
		want := now
		for left := n; left > 0; {
			if want = want.AddDate(0, 0, 1); want.Weekday() != time.Saturday && want.Weekday() != time.Sunday {
				left--
			}
		}
		if at := due(t, fmt.Sprintf("%d个工作日后", n), now, 1)[0]; at.Format(time.DateOnly) != want.Format(time.DateOnly) {
			t.Errorf("%d个工作日后 at %s is due at %s, want %s", n, now, at, want)
		}
		for _, at := range due(t, "every weekday at 09:00", now, 10) {
			if at.Weekday() == time.Saturday || at.Weekday() == time.Sunday {
				t.Errorf("every weekday is due on %s", at)
			}
		}
	})
}

// A full date is due then, or refused with the reason: it is past, or more than five years ahead.
func TestFullDates(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := drawNow(t, zone(t, "Asia/Shanghai"))
		day := now.AddDate(0, 0, rapid.IntRange(-3000, 3000).Draw(t, "days"))
		at := time.Date(day.Year(), day.Month(), day.Day(), exactHour().Draw(t, "hour"), rapid.IntRange(0, 59).Draw(t, "minute"), 0, 0, day.Location())
		for _, phrase := range []string{at.Format("2006-01-02 15:04"), at.Format("2006年1月2日15:04"), at.Format("2 January 2006 at 15:04")} {
			spec, _, err := Parse(phrase+" drink", now)
			switch next, _ := spec.Next(now); {
			case !at.After(now):
				if !errors.Is(err, ErrPast) {
					t.Errorf("%s at %s: %v", phrase, now, err)
				}
			case at.After(now.AddDate(maxYears, 0, 1)):
				if !errors.Is(err, ErrFar) {
					t.Errorf("%s at %s: %v", phrase, now, err)
				}
			case at.Before(now.AddDate(maxYears, 0, -1)) && at.Sub(now) > time.Minute:
				if err != nil || !next.Equal(at) {
					t.Errorf("%s at %s is due at %s, %v", phrase, now, next, err)
				}
			}
		}
	})
}

// Quiet hours end at the first minute behind the time that is outside them.
func TestQuietEndsAtTheFirstMinuteOutside(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		minute := rapid.IntRange(0, 1439)
		from, to := minute.Draw(t, "from"), minute.Draw(t, "to")
		q, err := ParseQuiet(fmt.Sprintf("%02d:%02d-%02d:%02d", from/60, from%60, to/60, to%60))
		if (err != nil) != (from == to) {
			t.Fatalf("from %d to %d: %v", from, to, err)
		}
		if err != nil {
			return
		}
		isQuiet := func(at time.Time) bool {
			n := at.Hour()*60 + at.Minute()
			return (n-from+1440)%1440 < (to-from+1440)%1440
		}
		at := drawNow(t, zone(t, "Asia/Shanghai"))
		end, ok := q.End(at)
		if ok != isQuiet(at) {
			t.Fatalf("%v at %s: quiet is %v", q, at, ok)
		}
		if !ok {
			return
		}
		want := at.Truncate(time.Minute)
		for isQuiet(want) {
			want = want.Add(time.Minute)
		}
		if _, still := q.End(end); still || !end.Equal(want) {
			t.Fatalf("%v at %s ends at %s, want %s", q, at, end, want)
		}
	})
}

// A zone's name is that of a zone with the same offset then.
func TestZoneNames(t *testing.T) {
	t.Parallel()
	for _, loc := range []*time.Location{
		zone(t, "Asia/Shanghai"), zone(t, "America/New_York"), time.UTC, time.FixedZone("", 5*3600+1800), time.FixedZone("XYZ", -3600), time.FixedZone("UTC", 7200),
	} {
		for month := range time.December {
			at := time.Date(2026, month+1, 1, 12, 0, 0, 0, loc)
			again, err := loadZone(zoneName(at))
			if err != nil || offset(at.In(again)) != offset(at) {
				t.Errorf("%s of %s is %v, %v", zoneName(at), at, again, err)
			}
		}
	}
}
