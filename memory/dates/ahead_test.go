package dates

import (
	"testing"
	"time"
)

// Dates of appointments are not before today, unless their words say so.
func TestAhead(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 14, 0, 0, 0, time.UTC) // a Monday
	for _, tt := range []struct {
		text, words, from, to string
		recurs                bool
	}{
		{"明天开会", "明天", "2026-11-24", "2026-11-25", false},
		{"昨天", "昨天", "2026-11-22", "2026-11-23", false},
		{"周一9点", "周一", "2026-11-23", "2026-11-24", true},
		{"周日", "周日", "2026-11-29", "2026-11-30", true},
		{"周末", "周末", "2026-11-28", "2026-11-30", true},
		{"下周五", "下周五", "2026-12-04", "2026-12-05", false},
		{"1号", "1号", "2026-12-01", "2026-12-02", true},
		{"23号", "23号", "2026-11-23", "2026-11-24", true},
		{"31号", "31号", "2026-12-31", "2027-01-01", true},
		{"15日", "15日", "2026-12-15", "2026-12-16", true},
		{"3月5日", "3月5日", "2027-03-05", "2027-03-06", true},
		{"2月29日", "2月29日", "2028-02-29", "2028-03-01", true},
		{"2月底", "2月底", "2027-02-28", "2027-03-01", true},
		{"3月", "3月", "2027-03-01", "2027-04-01", true},
		{"2020-01-02", "2020-01-02", "2020-01-02", "2020-01-03", false},
		{"friday at 9", "friday", "2026-11-27", "2026-11-28", true},
		{"on the 1st at 9", "on the 1st", "2026-12-01", "2026-12-02", true},
		{"on the 25th of december", "on the 25th of december", "2026-12-25", "2026-12-26", true},
		{"fri", "fri", "2026-11-27", "2026-11-28", true},
	} {
		m, ok := Ahead(tt.text, now)
		got := []string{m.Words, m.From.Format(time.DateOnly), m.To.Format(time.DateOnly)}
		if !ok || got[0] != tt.words || got[1] != tt.from || got[2] != tt.to || m.Recurs != tt.recurs {
			t.Errorf("%q is %q, recurs %v, found %v", tt.text, got, m.Recurs, ok)
		}
	}
	for _, text := range []string{"", "开会", "2月30日", "32号", "3号楼", "0号", "on time", "tomorrow's plan"} {
		if m, ok := Ahead(text, now); ok {
			t.Errorf("%q is %+v", text, m)
		}
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]int{
		"7": 7, "十": 10, "二十五": 25, "两": 2, "零五": 5, "一百二": 120, "一百零八": 108, "三百六十五": 365, "两千": 2000, "twelve": 12,
		"twenty-five": 25, "forty two": 42, "ninety": 90,
	} {
		if n, ok := Number(s); n != want || !ok {
			t.Errorf("%s is %d, %v", s, n, ok)
		}
	}
	for _, s := range []string{"", "二三", "十十", "百", "二零", "twenty-ten", "ten-one", "x", "99999999999999999999"} {
		if n, ok := Number(s); ok {
			t.Errorf("%s is %d", s, n)
		}
	}
}
