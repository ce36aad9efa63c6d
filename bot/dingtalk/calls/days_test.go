package calls

import (
	"fmt"
	"testing"
	"time"

	"ebb/sessions"
)

// Calls are listed by month and by day of Asia/Shanghai. A returned call is taken from the day on which it was counted.
func TestCallsAreListed(t *testing.T) {
	t.Parallel()
	s, c := openPG(t), newClock()
	g := newGovernor(s, 60, c)
	c.set(time.Date(2026, 11, 29, 15, 59, 0, 0, time.UTC)) // one minute before midnight in Shanghai
	if _, err := g.Reserve(t.Context(), Card, CardCreate, CardStream); err != nil {
		t.Fatal(err)
	}
	late, err := g.Reserve(t.Context(), Finish, GroupSend)
	if err != nil {
		t.Fatal(err)
	}
	c.set(c.now().Add(2 * time.Minute))
	for range 3 {
		if _, err := g.Reserve(t.Context(), Frame, CardStream); err != nil {
			t.Fatal(err)
		}
	}
	if err := late.Return(t.Context(), GroupSend); err != nil {
		t.Fatal(err)
	}
	c.set(c.now().AddDate(0, 0, 1)) // the first of December
	if _, err := g.Reserve(t.Context(), Finish, GroupSend); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		month string
		byDay bool
		limit int
		want  []sessions.CallCount
	}{
		{"", false, 50, []sessions.CallCount{
			{Period: "2026-12", Calls: 1, Quota: 60},
			{Period: "2026-12", API: "group_send", Calls: 1},
			{Period: "2026-11", Calls: 5, Quota: 60},
			{Period: "2026-11", API: "card_create", Calls: 1},
			{Period: "2026-11", API: "card_stream", Calls: 4},
			{Period: "2026-11", API: "group_send"},
		}},
		{"2026-12", false, 50, []sessions.CallCount{{Period: "2026-12", Calls: 1, Quota: 60}, {Period: "2026-12", API: "group_send", Calls: 1}}},
		{"", false, 1, []sessions.CallCount{{Period: "2026-12", Calls: 1, Quota: 60}}},
		{"2026-10", false, 50, nil},
		{"", true, 50, []sessions.CallCount{
			{Period: "2026-12-01", API: "group_send", Calls: 1},
			{Period: "2026-11-30", API: "card_stream", Calls: 3},
			{Period: "2026-11-29", API: "card_create", Calls: 1},
			{Period: "2026-11-29", API: "card_stream", Calls: 1},
			{Period: "2026-11-29", API: "group_send"},
		}},
		{"2026-12", true, 50, []sessions.CallCount{{Period: "2026-12-01", API: "group_send", Calls: 1}}},
	} {
		got, err := s.CallCounts(t.Context(), tt.month, tt.byDay, tt.limit)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("month %q, by day %v: %v, %v\nwant %v", tt.month, tt.byDay, got, err, tt.want)
		}
	}
}
