package when

import (
	"fmt"
	"strings"
	"time"
)

// Sets of weekdays, as bits from Sunday on.
const (
	workdays uint8 = 0b0111110
	weekend  uint8 = 0b1000001
)

// weekdayOf returns the day of a name in Chinese or English.
func weekdayOf(name string) time.Weekday {
	if i := strings.Index("日一二三四五六", name); i >= 0 {
		return time.Weekday(i / len("日"))
	}
	if name == "天" {
		return time.Sunday
	}
	return time.Weekday(strings.Index("su mo tu we th fr sa", name[:2]) / 3)
}

// nthIn returns the number of a weekday within a month as in a cron expression, such as "#2", or "L" for the last one.
func nthIn(ordinal string) string {
	nth := "L"
	for i, word := range []string{"first", "second", "third", "fourth", "fifth"} {
		n, _ := count(ordinal)
		if ordinal == word || ordinal[0] == byte('1'+i) || n == int64(i+1) {
			nth = fmt.Sprint("#", i+1)
		}
	}
	return nth
}
