package when

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// cronField is the values of a field as bits. starred fields leave the choice of the day to the other day field.
type cronField struct {
	bits    uint64
	starred bool
	last    bool      // L: the last day of the month
	nth     [7]uint64 // for a weekday the ordinals in the month, and bit 0 for its last one
}

func (f cronField) has(n int) bool { return f.bits>>n&1 == 1 }

// cron is a parsed expression.
type cron struct{ minute, hour, day, month, weekday cronField }

type cronBounds struct {
	name     string
	min, max int
	words    []string // names of the values, from min on
}

var (
	cronFields = [5]cronBounds{
		{"minute", 0, 59, nil},
		{"hour", 0, 23, nil},
		{"day", 1, 31, nil},
		{"month", 1, 12, strings.Fields("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC")},
		{"weekday", 0, 7, strings.Fields("SUN MON TUE WED THU FRI SAT")},
	}
	errCron = errors.New("not a cron expression")
)

// maxCron bounds an expression: a list of all minutes has 170 bytes.
const maxCron = 200

// parseCron reads five fields and returns their canonical form too.
func parseCron(expr string) (cron, string, error) {
	fields := strings.Fields(expr)
	if len(fields) != 5 || len(expr) > maxCron {
		return cron{}, "", errCron
	}
	var c cron
	for i, target := range []*cronField{&c.minute, &c.hour, &c.day, &c.month, &c.weekday} {
		f, err := parseCronField(strings.ToUpper(fields[i]), cronFields[i])
		if err != nil {
			return cron{}, "", err
		}
		*target = f
		fields[i] = f.format(fields[i], cronFields[i])
	}
	return c, strings.Join(fields, " "), nil
}

func parseCronField(s string, b cronBounds) (cronField, error) {
	f := cronField{starred: strings.HasPrefix(s, "*")}
	for item := range strings.SplitSeq(s, ",") {
		if !f.add(item, b) {
			return f, fmt.Errorf("%w: the field for the %s is wrong", errCron, b.name)
		}
	}
	return f, nil
}

// add reads an item of a list.
func (f *cronField) add(item string, b cronBounds) bool {
	if b.name == "day" && item == "L" {
		f.last = true
		return true
	}
	if b.name == "weekday" {
		if day, nth, ok := strings.Cut(item, "#"); ok {
			d, known := b.value(day)
			return known && len(nth) == 1 && '1' <= nth[0] && nth[0] <= '5' && f.addNth(d, int(nth[0]-'0'))
		}
		if day, ok := strings.CutSuffix(item, "L"); ok {
			d, known := b.value(day)
			return known && f.addNth(d, 0)
		}
	}
	span, stepText, stepped := strings.Cut(item, "/")
	step := 1
	if stepped {
		n, err := strconv.ParseUint(stepText, 10, 8)
		if err != nil || n == 0 || int(n) > b.max {
			return false
		}
		step = int(n)
	}
	from, to, ok := b.span(span, stepped)
	if !ok {
		return false
	}
	size := b.max - b.min + 1
	if b.max == 7 { // Sunday is 0 and 7.
		size = 7
	}
	for n := from; n <= to; n += step { // FRI-MON ends after the end of the week
		f.bits |= 1 << (b.min + (n-b.min)%size)
	}
	return true
}

func (f *cronField) addNth(weekday, nth int) bool {
	f.nth[weekday%7] |= 1 << nth
	return true
}

// span reads *, a value, or a range, which may wrap around. A value with a step lasts until the end.
func (b cronBounds) span(s string, stepped bool) (from, to int, ok bool) {
	end := b.max
	if end == 7 {
		end = 6
	}
	if s == "*" {
		return b.min, end, true
	}
	first, last, isRange := strings.Cut(s, "-")
	from, ok = b.value(first)
	switch {
	case !ok || !isRange && !stepped:
		return from, from, ok
	case !isRange:
		return from, max(from, end), ok
	}
	if to, ok = b.value(last); to < from {
		to += end - b.min + 1
	}
	return from, to, ok
}

func (b cronBounds) value(s string) (int, bool) {
	for i, word := range b.words {
		if s == word {
			return b.min + i, true
		}
	}
	n, err := strconv.ParseUint(s, 10, 8)
	return int(n), err == nil && b.min <= int(n) && int(n) <= b.max
}

// format writes a field with figures for names, in the order of the values. Fields with a star stay as they are.
func (f cronField) format(written string, b cronBounds) string {
	if f.starred {
		return strings.ToUpper(written)
	}
	var items []string
	for n := b.min; n <= b.max; n++ {
		if !f.has(n) {
			continue
		}
		length := bits.TrailingZeros64(^(f.bits >> n))
		if length < 3 {
			items = append(items, strconv.Itoa(n))
			continue
		}
		items = append(items, fmt.Sprintf("%d-%d", n, n+length-1))
		n += length - 1
	}
	if f.last {
		items = append(items, "L")
	}
	for day, set := range f.nth {
		if set&1 == 1 {
			items = append(items, fmt.Sprintf("%dL", day))
		}
		for nth := 1; nth <= 5; nth++ {
			if set>>nth&1 == 1 {
				items = append(items, fmt.Sprintf("%d#%d", day, nth))
			}
		}
	}
	return strings.Join(items, ",")
}

// maxCronMonths bounds the search for the next day: 29 February may be forty years away, if it has to be a Monday.
const maxCronMonths = 12 * 41

// next returns the first time of the wall clock that is not before from.
func (c cron) next(from time.Time) (time.Time, bool) {
	if rounded := from.Truncate(time.Minute); rounded.Before(from) {
		from = rounded.Add(time.Minute)
	}
	month := time.Date(from.Year(), from.Month(), 1, 0, 0, 0, 0, time.UTC)
	for n := range maxCronMonths {
		first := month.AddDate(0, n, 0)
		if !c.month.has(int(first.Month())) {
			continue
		}
		for day := first; day.Month() == first.Month(); day = day.AddDate(0, 0, 1) {
			if day.AddDate(0, 0, 1).After(from) && c.hasDay(day) {
				if t, ok := c.timeOf(day, from); ok {
					return t, true
				}
			}
		}
	}
	return time.Time{}, false
}

func (c cron) hasDay(day time.Time) bool {
	end := day.AddDate(0, 1, -day.Day()).Day()
	nth := c.weekday.nth[day.Weekday()]
	byDay := c.day.has(day.Day()) || c.day.last && day.Day() == end
	byWeekday := c.weekday.has(int(day.Weekday())) || nth>>((day.Day()+6)/7)&1 == 1 || nth&1 == 1 && day.Day() > end-7
	if c.day.starred || c.weekday.starred {
		return byDay && byWeekday
	}
	return byDay || byWeekday
}

// timeOf returns the first time of a day that is not before from.
func (c cron) timeOf(day, from time.Time) (time.Time, bool) {
	for hour := range 24 {
		if !c.hour.has(hour) || day.Add(time.Duration(hour+1)*time.Hour).Compare(from) <= 0 {
			continue
		}
		for minute := range 60 {
			t := day.Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute)
			if c.minute.has(minute) && !t.Before(from) {
				return t, true
			}
		}
	}
	return time.Time{}, false
}
