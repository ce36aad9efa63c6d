package console_test

import (
	"slices"
	"testing"

	"ebb/memory/pages"
	"ebb/sessions"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// The console's list has active schedules by their next time, then ended ones, in pages, by state, kind and group.
func TestSchedulesInPages(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	storetest.Execute(t, pool, `INSERT INTO dingtalk_sessions (session_key, robot_code, conversation_id, conversation_type, title)
		VALUES ('robot/a', 'robot', 'a', '2', '周报群'), ('robot/b', 'robot', 'b', '1', '张三')`)
	storetest.Execute(t, pool, `INSERT INTO schedules (session_key, id, kind, due_at, spec, text, created_by, creator, origin, state, settled_at, created_at)
		SELECT CASE WHEN i % 2 = 0 THEN 'robot/a' ELSE 'robot/b' END, i, CASE WHEN i < 4 THEN 'ask' ELSE 'remind' END, now() + interval '1 hour' * i, '', 't' || i, 'u', '{}', 'o' || i,
			CASE WHEN i = 6 THEN 'done' ELSE 'active' END, CASE WHEN i = 6 THEN now() END, now() - interval '1 hour' * (7 - i) FROM generate_series(1, 6) i`)
	list := func(f pages.ScheduleFilter, limit int) (texts []string) {
		t.Helper()
		for cursor := ""; ; {
			rows, next, err := s.Pages().Schedules(t.Context(), f, pages.Page{Limit: limit, Cursor: cursor})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rows {
				texts = append(texts, r.Text)
			}
			if cursor = next; next == "" {
				return texts
			}
		}
	}
	for _, c := range []struct {
		name string
		f    pages.ScheduleFilter
		want []string
	}{
		{"all", pages.ScheduleFilter{}, []string{"t1", "t2", "t3", "t4", "t5", "t6"}},
		{"state", pages.ScheduleFilter{State: "done"}, []string{"t6"}},
		{"kind", pages.ScheduleFilter{Kind: "ask"}, []string{"t1", "t2", "t3"}},
		{"group", pages.ScheduleFilter{Words: []string{"周报"}}, []string{"t2", "t4", "t6"}},
		{"title of a private chat", pages.ScheduleFilter{Words: []string{"张三"}}, nil},
		{"only", pages.ScheduleFilter{Only: []sessions.Key{"robot/b"}}, []string{"t1", "t3", "t5"}},
		{"only none", pages.ScheduleFilter{Only: []sessions.Key{}}, nil},
	} {
		for _, limit := range []int{2, 100} {
			if got := list(c.f, limit); !slices.Equal(got, c.want) {
				t.Errorf("%s in pages of %d: %q, want %q", c.name, limit, got, c.want)
			}
		}
	}
}
