package off_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/off"
	"ebb/bot/reload"
	"ebb/memory"
	"ebb/sessions"
)

// A bot does not begin without one of its parts: the turn that needs it would fail.
func TestMissingPartsAreNamed(t *testing.T) {
	t.Parallel()
	of := reflect.TypeFor[bot.Parts]()
	for i := range of.NumField() {
		cfg := bot.Config{
			Metrics: prometheus.NewRegistry(), Transport: &bottest.Wire{}, Elector: &bottest.Store{}, Counter: bottest.Counter,
			Values: reload.Values{Model: &bottest.Script{}, Compaction: bottest.SmallSettings}, Parts: off.Parts(),
		}
		if _, err := bot.New(cfg); err != nil {
			t.Fatalf("with all parts: %v", err)
		}
		reflect.ValueOf(&cfg.Parts).Elem().Field(i).SetZero()
		if _, err := bot.New(cfg); err == nil || !strings.Contains(err.Error(), of.Field(i).Name+" of the bot is missing") {
			t.Errorf("without %s: %v", of.Field(i).Name, err)
		}
	}
}

// Background work with parts that are off has nothing to do, and each loop over their rows ends.
func TestPartsHaveNothingToDo(t *testing.T) {
	t.Parallel()
	p, ctx := off.Parts(), t.Context()
	for name, list := range map[string]func(context.Context) (int, error){
		"index":   func(ctx context.Context) (int, error) { return p.Index.IndexBacklog(ctx, 10) },
		"expired": p.Tidying.DeleteExpired,
		"overfull": count(func(ctx context.Context) ([]memory.OverfullScope, error) {
			return p.Tidying.OverfullScopes(ctx, 1, memory.OverfullScope{})
		}),
		"groups": count(func(ctx context.Context) ([]memory.FactGroup, error) {
			return p.Tidying.FactGroups(ctx, memory.OverfullScope{})
		}),
		"requests": count(func(ctx context.Context) ([]sessions.CompactionRequest, error) {
			return p.Requests.CompactionRequests(ctx, "a", 10)
		}),
		"schedules": count(func(ctx context.Context) ([]sessions.Schedule, error) {
			return p.Schedules.DueSchedules(ctx, sessions.Schedule{}, 10)
		}),
		"approvals": count(func(ctx context.Context) ([]sessions.Approval, error) {
			return p.Approvals.DueApprovals(ctx, sessions.Approval{}, 10)
		}),
		"kept files":     count(func(ctx context.Context) ([]sessions.KeptFile, error) { return p.Kept.Files(ctx, "k") }),
		"files of calls": count(func(ctx context.Context) ([]sessions.File, error) { return p.Files.Kept(ctx, "k", []int64{1}) }),
		"attachments":    count(func(ctx context.Context) ([]sessions.Media, error) { return p.Media.List(ctx, "k", sessions.Event{}) }),
		"restarts":       count(p.Reporter.EndedRestarts),
		"lost": func(ctx context.Context) (int, error) {
			n, err := p.Reporter.Gone(ctx, []sessions.Stored{{Key: "k", EventID: 1}})
			return int(n), err
		},
	} {
		if n, err := list(ctx); n != 0 || err != nil {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
	if p.Planner.Settings().Enabled {
		t.Error("reminders can be set")
	}
	if err := p.Planner.Calls.Promise(ctx, sessions.CallPromise{Calls: 1}); err != nil || p.Planner.Calls.MonthEnd().After(time.Now()) {
		t.Errorf("calls are bounded: %v", err)
	}
}

// A part that is off refuses to store a file, and knows of none.
func TestFilesAreRefused(t *testing.T) {
	t.Parallel()
	p, ctx := off.Parts(), t.Context()
	if _, err := p.Files.Keep(ctx, sessions.Lease{}, 1, sessions.File{}); !errors.Is(err, sessions.ErrRefused) { // it is not tried again
		t.Errorf("the file of a reply: %v", err)
	}
	if _, err := p.Kept.KeepFile(ctx, sessions.Lease{}, sessions.KeptFile{}, sessions.FileRights{}); !errors.Is(err, off.ErrOff) {
		t.Errorf("a kept file: %v", err)
	}
	if _, err := p.Files.Body(ctx, "k", 1); !errors.Is(err, sessions.ErrNotFound) || p.Files.Delete(ctx, "k", 1) != nil {
		t.Errorf("the bytes of a file: %v", err)
	}
	if err := p.Kept.ForgetFile(ctx, "k", 1); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("the end of a kept file: %v", err)
	}
}

func count[T any](list func(context.Context) ([]T, error)) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		all, err := list(ctx)
		return len(all), err
	}
}
