package calls

import (
	"time"

	"ebb/sessions"
)

// Zone is the time zone of DingTalk's months and days.
const Zone = "Asia/Shanghai"

// China has no daylight saving time.
var shanghai = time.FixedZone(Zone, 8*60*60)

const dayForm = "2006-01-02"

// MonthAt is like 2026-11.
func MonthAt(at time.Time) string { return sessions.MonthOf(dayAt(at)) }

func dayAt(at time.Time) string { return at.In(shanghai).Format(dayForm) }

func monthEnd(at time.Time) time.Time {
	at = at.In(shanghai)
	return time.Date(at.Year(), at.Month()+1, 1, 0, 0, 0, 0, shanghai)
}
