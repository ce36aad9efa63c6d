package memory

import (
	"fmt"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the zones of the tests

	"pgregory.net/rapid"

	"ebb/sessions"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

// The digest of a day is due from 04:00 on the next one in the group's zone, on any change of clocks, and for a week.
func TestDaysEnded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		zone, now string // as clocks there show it
		first     string
		last      string
		n         int
	}{
		{"Asia/Shanghai", "2026-11-21 03:59", "2026-11-14", "2026-11-19", 6},
		{"Asia/Shanghai", "2026-11-21 04:00", "2026-11-14", "2026-11-20", 7},
		{"Asia/Shanghai", "2026-03-01 23:59", "2026-02-22", "2026-02-28", 7},
		{"America/Sao_Paulo", "2018-11-05 12:00", "2018-10-29", "2018-11-04", 7}, // no 00:00 on the 4th
		{"America/New_York", "2026-11-02 04:30", "2026-10-26", "2026-11-01", 7},  // 25 hours on the 1st
	} {
		loc := zone(t, c.zone)
		now, err := time.ParseInLocation("2006-01-02 15:04", c.now, loc)
		if err != nil {
			t.Fatal(err)
		}
		days := DaysEnded(now, 4, 0, loc)
		if len(days) != c.n || days[0].Date != c.first || days[c.n-1].Date != c.last {
			t.Errorf("%s at %s: %v", c.zone, c.now, days)
		}
	}
}

// Every instant is of one day, which has the date that clocks show: days lie end to end.
func TestDaysLieEndToEnd(t *testing.T) {
	t.Parallel()
	zones := []*time.Location{time.UTC, zone(t, "Asia/Shanghai"), zone(t, "America/Sao_Paulo"), zone(t, "America/New_York"), zone(t, "Asia/Beirut"), zone(t, "Pacific/Apia")}
	rapid.Check(t, func(t *rapid.T) {
		loc := rapid.SampledFrom(zones).Draw(t, "zone")
		now := time.Unix(rapid.Int64Range(1_200_000_000, 2_000_000_000).Draw(t, "now"), 0)
		days := DaysEnded(now, rapid.IntRange(0, 23).Draw(t, "hour"), rapid.IntRange(0, 59).Draw(t, "minute"), loc)
		for i, d := range days {
			if !d.From.Before(d.To) && d.Date != "2011-12-30" { // a day that Samoa never had
				t.Fatalf("%s lasts from %s to %s", d.Date, d.From, d.To)
			}
			if i > 0 && !days[i-1].To.Equal(d.From) {
				t.Fatalf("%s ends at %s, and %s begins at %s", days[i-1].Date, days[i-1].To, d.Date, d.From)
			}
			if d.From.Before(d.To) && (d.From.In(loc).Format(time.DateOnly) != d.Date || d.To.Add(-time.Second).In(loc).Format(time.DateOnly) != d.Date) {
				t.Fatalf("%s lasts from %s to %s", d.Date, d.From.In(loc), d.To.In(loc))
			}
			if now.Before(d.To) {
				t.Fatalf("%s is due before its end, at %s", d.Date, now.In(loc))
			}
		}
	})
}

func TestDigestScope(t *testing.T) {
	t.Parallel()
	for key, want := range map[sessions.Key]string{"r/c": "group r/c", "r/c/u1": "session r/c/u1"} {
		scope, id := DigestScope(sessions.Session{Key: key, RobotCode: "r", ConversationID: "c"})
		if got := fmt.Sprint(scope, " ", id); got != want {
			t.Errorf("digests of %s are of %s, want %s", key, got, want)
		}
	}
}

func TestClockOf(t *testing.T) {
	t.Parallel()
	if h, m, err := ClockOf("04:30"); h != 4 || m != 30 || err != nil {
		t.Errorf("04:30 is %d:%d, %v", h, m, err)
	}
	for _, bad := range []string{"", "25:00", "04:60", "4", "04:00:00", "noon"} {
		if _, _, err := ClockOf(bad); err == nil {
			t.Errorf("%q is taken for a time of day", bad)
		}
	}
}

// A whole group reads a digest: it has no private data and no credentials.
func TestDigestBody(t *testing.T) {
	t.Parallel()
	body := DigestBody("## 决定\n- 发布定在周五\n- 李雷的月薪是 23000 元\n- 张伟确诊了抑郁症，请假两周\n- the root password is Pa55w0rd!x\n- 王芳负责验收\n")
	for _, kept := range []string{"## 决定", "发布定在周五", "王芳负责验收"} {
		if !strings.Contains(body, kept) {
			t.Errorf("%q lacks %q", body, kept)
		}
	}
	for _, gone := range []string{"23000", "抑郁症", "Pa55w0rd"} {
		if strings.Contains(body, gone) {
			t.Errorf("%q has %q", body, gone)
		}
	}
	if body := DigestBody("李雷的月薪是 23000 元\n"); body != "" {
		t.Errorf("nothing may be kept, and it is %q", body)
	}
}
