package bot

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"ebb/sessions"
	"ebb/sessions/llm"
)

// Administrators read once a day of each model and cause that needs them, and once more after the model had answered. A single
// refused request, an outage and a refused content are no such cause. A notice that could not be stored follows with a later refusal,
// and one administrator's does not keep it from the others.
func TestAdministratorsReadOnceOfAModel(t *testing.T) {
	t.Parallel()
	now, away := time.Date(2026, 3, 5, 10, 0, 0, 0, time.UTC), false
	var notices []sessions.Message
	a := &alarm{
		robot: func() sessions.RobotCode { return "bot1" }, now: func() time.Time { return now }, location: time.UTC, models: map[string]*ailing{},
		language: func(sessions.ConversationID, string) string { return "en" },
		admins:   func() []sessions.UserID { return []sessions.UserID{"u-refused", "u-root"} },
		accept: func(_ context.Context, _ sessions.Key, m sessions.Message) (sessions.Accepted, error) {
			if away || m.StaffID == "u-refused" {
				return sessions.Accepted{}, sessions.ErrRefused
			}
			notices = append(notices, m)
			return sessions.Accepted{}, nil
		},
		accepted: func(sessions.Accepted) {},
	}
	greets := false
	after := func(step string, times int, class llm.ErrorClass, wantNotices int) {
		t.Helper()
		for range times {
			p := llm.Part{Model: "main"}
			if class != "" {
				p.Err = &llm.CallError{Class: class, Status: 400, Model: "main", Err: errors.New("provider's words")}
			}
			a.watch(t.Context(), llm.Request{Greets: greets}, []llm.Part{p})
			a.work.Wait()
		}
		if len(notices) != wantNotices {
			t.Fatalf("%s: %d notices, want %d", step, len(notices), wantNotices)
		}
	}
	after("trouble that passes", 9, llm.Busy, 0)
	after("refused contents", 19, llm.Refused, 0)
	after("an answer", 1, "", 0)
	after("more of these", 19, llm.Refused, 0)
	after("an answer", 1, "", 0)
	after("four refused requests", 4, llm.Malformed, 0)
	after("an answer", 1, "", 0)
	after("four more", 4, llm.Malformed, 0)
	after("a fifth", 5, llm.Malformed, 1)
	after("the key", 9, llm.Denied, 2)
	after("the money", 9, llm.Unpaid, 3)
	after("an answer", 1, "", 3)
	after("the key again", 9, llm.Denied, 4)
	after("an answer", 1, "", 4)
	after("the key a third time", 9, llm.Denied, 4)
	now = now.Add(24 * time.Hour)
	after("contents alone are refused", 30, llm.Refused, 5)
	now = now.Add(24 * time.Hour)
	after("an answer", 1, "", 5)
	greets = true
	after("a greeting is refused", 3, llm.Refused, 6)
	greets = false
	now = now.Add(24 * time.Hour)
	away = true
	after("no storage", 9, llm.Denied, 6)
	away = false
	after("at once", 9, llm.Denied, 6)
	now = now.Add(alarmRest)
	after("the next day", 9, llm.Denied, 7)
	ids := map[sessions.MessageID]bool{}
	for _, n := range notices {
		if ids[n.ID] || n.StaffID != "u-root" || n.ConversationType != sessions.Private || strings.Contains(n.Text, "provider") || !strings.Contains(n.Text, "main") {
			t.Errorf("a notice: %+v", n)
		}
		ids[n.ID] = true
	}
}

// An endpoint of embeddings needs administrators for its key, money and name, and for nothing that a text may cause.
func TestAdministratorsReadOfEmbeddings(t *testing.T) {
	t.Parallel()
	var notices []string
	a := &alarm{
		robot: func() sessions.RobotCode { return "bot1" }, now: time.Now, location: time.UTC, models: map[string]*ailing{},
		language: func(sessions.ConversationID, string) string { return "en" },
		admins:   func() []sessions.UserID { return []sessions.UserID{"u-root"} },
		accept: func(_ context.Context, _ sessions.Key, m sessions.Message) (sessions.Accepted, error) {
			notices = append(notices, m.Text)
			return sessions.Accepted{}, nil
		},
		accepted: func(sessions.Accepted) {},
	}
	for _, class := range []llm.ErrorClass{llm.Malformed, llm.Refused, llm.Busy, llm.Denied, llm.Denied} {
		for range 9 {
			a.watchVectors(t.Context(), []llm.Part{{Model: "main", Err: &llm.CallError{Class: class, Model: "main", Err: errors.New("provider's words")}}})
			a.work.Wait()
		}
	}
	if len(notices) != 1 || !strings.Contains(notices[0], "embeddings (model main)") || strings.Contains(notices[0], "provider") {
		t.Errorf("notices: %q", notices)
	}
	a.watch(t.Context(), llm.Request{}, []llm.Part{{Model: "main", Err: &llm.CallError{Class: llm.Denied, Model: "main"}}})
	a.work.Wait()
	if len(notices) != 2 || strings.Contains(notices[1], "embeddings") {
		t.Errorf("after a refusal of the model with that name: %q", notices)
	}
}
