package console

import (
	"testing"
	"time"

	"ebb/bot/schedule/when"
)

// A repetition by the calendar names its zone on pages of another one. Zones without a name are compared by their offset.
func TestForeignZone(t *testing.T) {
	t.Parallel()
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		t.Fatal(err)
	}
	east := time.FixedZone("Local", 8*3600)
	for _, c := range []struct {
		stored string
		zone   *time.Location
		want   string
	}{
		{"CRON_TZ=Asia/Shanghai 0 9 * * 5", shanghai, ""},
		{"CRON_TZ=Asia/Shanghai 0 9 * * 5", time.UTC, "Asia/Shanghai (UTC+08:00)"},
		{"CRON_TZ=+08:00 0 9 * * 5", east, ""},
		{"CRON_TZ=+08:00 0 9 * * 5", time.UTC, "UTC+08:00"},
		{"every 2w from 2026-11-23T09:00:00+08:00 Asia/Shanghai", time.UTC, "Asia/Shanghai (UTC+08:00)"},
		{"every 30m from 2026-11-23T14:30:00+08:00 Asia/Shanghai", time.UTC, ""},
	} {
		spec, err := when.Read(c.stored)
		if err != nil {
			t.Fatal(err)
		}
		if got := foreignZone(spec, time.Date(2026, 11, 27, 1, 0, 0, 0, time.UTC).In(c.zone)); got != c.want {
			t.Errorf("%s on pages in %v names the zone %q, want %q", c.stored, c.zone, got, c.want)
		}
	}
}
