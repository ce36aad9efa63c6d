package when

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func zone(t interface{ Fatal(...any) }, name string) *time.Location {
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

// A time in the gap of a change to summer time is due once, at the end of the gap. A time that clocks show twice is due at
// the first of the two.
func TestNextAtChangesOfTheClock(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ stored, after, want string }{
		{"CRON_TZ=America/New_York 30 2 * * *", "2026-03-07T12:00:00-05:00", "2026-03-08T03:00:00-04:00 2026-03-09T02:30:00-04:00"},
		{"CRON_TZ=America/New_York */20 2 * * *", "2026-03-07T12:00:00-05:00", "2026-03-08T03:00:00-04:00 2026-03-09T02:00:00-04:00"},
		{"CRON_TZ=America/New_York 0 2,3 * * *", "2026-03-07T12:00:00-05:00", "2026-03-08T03:00:00-04:00 2026-03-09T02:00:00-04:00"},
		{"CRON_TZ=America/New_York 30 1 * * *", "2026-10-31T12:00:00-04:00", "2026-11-01T01:30:00-04:00 2026-11-02T01:30:00-05:00"},
		{"CRON_TZ=America/New_York 30 1 * * *", "2026-11-01T01:10:00-05:00", "2026-11-02T01:30:00-05:00 2026-11-03T01:30:00-05:00"},
		{"CRON_TZ=Australia/Lord_Howe 15 2 * * *", "2026-10-03T12:00:00+10:30", "2026-10-04T02:30:00+11:00 2026-10-05T02:15:00+11:00"},
		{"CRON_TZ=Pacific/Apia 0 9 * * *", "2011-12-29T08:00:00-10:00", "2011-12-29T09:00:00-10:00 2011-12-31T00:00:00+14:00 2011-12-31T09:00:00+14:00"},
		{"CRON_TZ=America/Sao_Paulo 0 0 * * *", "2018-11-03T12:00:00-03:00", "2018-11-04T01:00:00-02:00 2018-11-05T00:00:00-02:00"},
		{"every 1d from 2026-03-07T02:30:00-05:00 America/New_York", "2026-03-07T02:30:00-05:00", "2026-03-08T03:00:00-04:00 2026-03-09T02:30:00-04:00"},
		{"every 1w from 2026-10-25T01:30:00-04:00 America/New_York", "2026-10-25T02:00:00-04:00", "2026-11-01T01:30:00-04:00 2026-11-08T01:30:00-05:00"},
		{"every 30m from 2026-03-08T01:30:00-05:00 America/New_York", "2026-03-08T01:30:00-05:00", "2026-03-08T03:00:00-04:00 2026-03-08T03:30:00-04:00"},
	} {
		spec, err := Read(tt.stored)
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339, tt.after)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for range strings.FieldsSeq(tt.want) {
			at, _ = spec.Next(at)
			got = append(got, at.Format(time.RFC3339))
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s after %s: %s, want %s", tt.stored, tt.after, got, tt.want)
		}
	}
}

// cronItem draws an item of a field.
func cronItem(low, high int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		a, b := rapid.IntRange(low, high).Draw(t, "a"), rapid.IntRange(low, high).Draw(t, "b")
		switch rapid.IntRange(0, 4).Draw(t, "form") {
		case 0:
			return fmt.Sprint(a)
		case 1:
			return fmt.Sprintf("%d-%d", a, b)
		case 2:
			return fmt.Sprintf("%d-%d/%d", a, b, rapid.IntRange(1, 5).Draw(t, "step"))
		case 3:
			return fmt.Sprintf("*/%d", rapid.IntRange(1, high).Draw(t, "step"))
		default:
			return "*"
		}
	})
}

func cronExpr() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		var fields []string
		for _, b := range cronFields {
			fields = append(fields, strings.Join(rapid.SliceOfN(cronItem(b.min, b.max), 1, 2).Draw(t, b.name), ","))
		}
		if rapid.IntRange(0, 4).Draw(t, "last") == 0 {
			fields[2] = "L"
		}
		switch rapid.IntRange(0, 4).Draw(t, "nth") {
		case 0:
			fields[4] = fmt.Sprint(rapid.IntRange(0, 7).Draw(t, "day"), "L")
		case 1:
			fields[4] = fmt.Sprintf("%d#%d", rapid.IntRange(0, 7).Draw(t, "day"), rapid.IntRange(1, 5).Draw(t, "n"))
		}
		return strings.Join(fields, " ")
	})
}

// matchesField is the definition of a field, item by item.
func matchesField(field string, value, low, high, cycle int) bool {
	return slices.ContainsFunc(strings.Split(field, ","), func(item string) bool {
		span, stepText, stepped := strings.Cut(item, "/")
		step := 1
		if stepped {
			step, _ = strconv.Atoi(stepText)
		}
		from, to := low, high
		if span != "*" {
			first, last, isRange := strings.Cut(span, "-")
			from, _ = strconv.Atoi(first)
			to = from
			if isRange {
				to, _ = strconv.Atoi(last)
			}
		}
		if to < from {
			to += cycle
		}
		for n := from; n <= to; n += step {
			if (n-low)%cycle == (value-low)%cycle {
				return true
			}
		}
		return false
	})
}

// matchesCron is the definition of an expression for a minute of the wall clock.
func matchesCron(expr string, t time.Time) bool {
	f := strings.Fields(expr)
	end := time.Date(t.Year(), t.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day()
	day := f[2] == "L" && t.Day() == end || f[2] != "L" && matchesField(f[2], t.Day(), 1, 31, 31)
	var weekday bool
	if name, ok := strings.CutSuffix(f[4], "L"); ok {
		n, _ := strconv.Atoi(name)
		weekday = int(t.Weekday()) == n%7 && t.Day()+7 > end
	} else if name, nth, ok := strings.Cut(f[4], "#"); ok {
		n, _ := strconv.Atoi(name)
		weekday = int(t.Weekday()) == n%7 && fmt.Sprint((t.Day()-1)/7+1) == nth
	} else {
		weekday = matchesField(f[4], int(t.Weekday()), 0, 6, 7)
	}
	byDay := day || weekday
	if f[2][0] == '*' || f[4][0] == '*' {
		byDay = day && weekday
	}
	return byDay && matchesField(f[0], t.Minute(), 0, 59, 60) && matchesField(f[1], t.Hour(), 0, 23, 24) &&
		matchesField(f[3], int(t.Month()), 1, 12, 12)
}

// The next time of an expression is the first minute that its definition accepts.
func TestCronAgainstItsDefinition(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		expr := cronExpr().Draw(t, "expr")
		c, canonical, err := parseCron(expr)
		if err != nil {
			t.Fatalf("%s: %v", expr, err)
		}
		if again, same, err := parseCron(canonical); err != nil || again != c || same != canonical {
			t.Fatalf("%s is %s in canonical form, which is %s, %v", expr, canonical, same, err)
		}
		from := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(rapid.IntRange(0, 3*366*1440).Draw(t, "minute")) * time.Minute)
		next, ok := c.next(from)
		for at := from; at.Before(from.AddDate(0, 1, 0)); at = at.Add(time.Minute) {
			if matchesCron(expr, at) {
				if !ok || !next.Equal(at) {
					t.Fatalf("%s from %s: %s, %v; want %s", expr, from, next, ok, at)
				}
				return
			}
		}
		if ok && (next.Before(from.AddDate(0, 1, 0)) || !matchesCron(expr, next)) {
			t.Fatalf("%s from %s: %s", expr, from, next)
		}
	})
}

func TestCronRefuses(t *testing.T) {
	t.Parallel()
	for _, expr := range []string{
		"", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 13 *", "* * * * 8", "*/0 * * * *", "*/60 * * * *",
		"1-2-3 * * * *", "1, * * * *", "- * * * *", "a * * * *", "5/ * * * *", "* L * * *", "* * * * 1#6", "* * * * 1#0", "* * * * #1", "* * * * L", "* * * * MONDAY",
		"** * * * *", "+1 * * * *", "1.5 * * * *", "99999999999999999999 * * * *", strings.Repeat("1,", 200) + "1 * * * *",
	} {
		if _, canonical, err := parseCron(expr); err == nil {
			t.Errorf("%q is %s", expr, canonical)
		}
	}
	if s, err := newCron("0 0 31 2 *", "UTC"); err == nil {
		t.Errorf("31 February is %s", s)
	}
}

// storedSpec draws repetitions of all forms, in zones with and without summer time.
func storedSpec() *rapid.Generator[Spec] {
	return rapid.Custom(func(t *rapid.T) Spec {
		loc := zone(t, rapid.SampledFrom([]string{"UTC", "Asia/Shanghai", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"}).Draw(t, "zone"))
		if rapid.Bool().Draw(t, "interval") {
			first := time.Unix(rapid.Int64Range(1_200_000_000, 1_900_000_000).Draw(t, "first"), 0).In(loc)
			return newInterval(first, rapid.IntRange(1, 100).Draw(t, "every"), rapid.SampledFrom([]unit{seconds, minutes, hours, days, weeks}).Draw(t, "unit"))
		}
		spec, err := newCron(cronExpr().Draw(t, "expr"), loc.String())
		if err != nil {
			t.Skip("no day matches") // as on 30 February
		}
		return spec
	})
}

// The next time is after the given one, and no time in between has another next time.
func TestNextJumpsOverNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		spec := storedSpec().Draw(t, "spec")
		after := time.Unix(rapid.Int64Range(1_200_000_000, 1_900_000_000).Draw(t, "after"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanosecond"))
		next, ok := spec.Next(after)
		if !ok || !next.After(after) {
			t.Fatalf("%s after %s: %s, %v", spec, after, next, ok)
		}
		between := after.Add(time.Duration(rapid.Float64Range(0, 0.999).Draw(t, "part") * float64(next.Sub(after))))
		if same, ok := spec.Next(between); !ok || !same.Equal(next) {
			t.Fatalf("%s after %s: %s, and after %s: %s", spec, after, next, between, same)
		}
		if again, err := Read(spec.String()); err != nil || again != spec {
			t.Fatalf("%s is read as %s, %v", spec, again, err)
		}
	})
}

// A matching minute is due at its first instant, in each zone and at each change of the clock.
func TestEachMatchingMinuteIsDue(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"America/New_York", "Australia/Lord_Howe", "Europe/London"} {
		loc := zone(t, name)
		spec, err := newCron("*/15 * * * *", name)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, loc)
		for end := at.AddDate(1, 0, 0); at.Before(end); {
			next, _ := spec.Next(at)
			for minute := at.Add(time.Minute); !minute.After(next); minute = minute.Add(time.Minute) {
				shown := minute.Format("01-02 15:04")
				if minute.Minute()%15 == 0 && !seen[shown] {
					if seen[shown] = true; !minute.Equal(next) {
						t.Fatalf("%s: %s was skipped", name, minute)
					}
				}
			}
			at = next
		}
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	for _, stored := range []string{
		"", "x", "0 9 * * *", "CRON_TZ=Asia/Shanghai", "CRON_TZ= 0 9 * * *", "CRON_TZ=Mars/Base 0 9 * * *", "CRON_TZ=../../etc/passwd 0 9 * * *",
		"CRON_TZ=UTC 0 0 31 2 *", "CRON_TZ=UTC 0  9 * * *", "CRON_TZ=UTC 0 9 * * MON", "every 0m from 2026-11-23T14:30:00Z UTC",
		"every 1y from 2026-11-23T14:30:00Z UTC", "every 30m from 2026-11-23 UTC", "every 30m from 2026-11-23T14:30:00Z Mars/Base",
		"every 999999999w from 2026-11-23T14:30:00Z UTC", "every 30m from 2026-11-23T14:30:00+01:00 UTC", "2026-11-31T09:00:00Z", "2026-11-23T09:00:00.5Z",
	} {
		if spec, err := Read(stored); err == nil {
			t.Errorf("%q is %s", stored, spec)
		}
	}
	var never Spec
	if next, ok := never.Next(time.Unix(0, 0)); ok || never.Repeats() || never.Words("en") != "" {
		t.Errorf("the zero spec is due at %s", next)
	}
}

func TestQuiet(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ hours, zone, at, end string }{
		{"22:00-08:00", "Asia/Shanghai", "2026-11-23 21:59:59", ""},
		{"22:00-08:00", "Asia/Shanghai", "2026-11-23 22:00:00", "2026-11-24 08:00:00"},
		{"22:00-08:00", "Asia/Shanghai", "2026-11-24 07:59:59", "2026-11-24 08:00:00"},
		{"22:00-08:00", "Asia/Shanghai", "2026-11-24 08:00:00", ""},
		{"22:00-08:00", "Asia/Shanghai", "2026-12-31 23:00:00", "2027-01-01 08:00:00"},
		{"12:30-13:30", "Asia/Shanghai", "2026-11-24 13:00:00", "2026-11-24 13:30:00"},
		{"12:30-13:30", "Asia/Shanghai", "2026-11-24 12:29:00", ""},
		{"20:00-24:00", "Asia/Shanghai", "2026-11-24 23:59:59", "2026-11-25 00:00:00"},
		{"22:00-00:00", "Asia/Shanghai", "2026-11-24 23:59:59", "2026-11-25 00:00:00"},
		{"22:00-02:30", "America/New_York", "2026-03-08 01:00:00", "2026-03-08 03:00:00"},
		{"", "Asia/Shanghai", "2026-11-24 00:00:00", ""},
	} {
		q, err := ParseQuiet(tt.hours)
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.ParseInLocation(tableTime, tt.at, zone(t, tt.zone))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if end, ok := q.End(at); ok {
			got = end.Format(tableTime)
		}
		if got != tt.end {
			t.Errorf("%s at %s ends %q, want %q", tt.hours, tt.at, got, tt.end)
		}
	}
	for _, hours := range []string{"22", "22:00", "22:00-22:00", "00:00-24:00", "24:00-08:00", "22:60-08:00", "22:00-24:30", "x"} {
		if q, err := ParseQuiet(hours); err == nil {
			t.Errorf("%q is %v", hours, q)
		}
	}
}

// The end of quiet hours is after the time, outside the hours, and no earlier time is outside.
func TestQuietEndsOutside(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		minute := rapid.IntRange(0, 1439)
		from, to := minute.Draw(t, "from"), minute.Draw(t, "to")
		if from == to {
			return
		}
		q := Quiet{from, to}
		at := time.Unix(rapid.Int64Range(1_760_000_000, 1_800_000_000).Draw(t, "at"), 0).In(zone(t, "America/New_York"))
		end, ok := q.End(at)
		if !ok {
			return
		}
		if !end.After(at) || end.Sub(at) > 25*time.Hour {
			t.Fatalf("%v at %s ends at %s", q, at, end)
		}
	})
}
