package choice

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ebb/bot/chat"
	"ebb/bot/command"
	"ebb/bot/parts"
	"ebb/bot/reload"
	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/sessions"
)

// usable is the tokens of a request's messages in the tests.
const usable = 12000

// testChooser chooses without a store.
func testChooser(t *testing.T) *Chooser {
	t.Helper()
	counter, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	window := compaction.Window{Context: 16000, Reserve: 4000, Threshold: 4000, Share: 0.5, FlushRatio: 0.9, Summary: 400}
	current := reload.New(reload.Values{Compaction: compaction.Settings{Enabled: true, Window: window, Policy: compaction.Policies["token_budget"]}})
	p := &parts.Shared{Counter: counter, Current: current, Languages: wording.Languages{Preset: "zh", Assigned: func(sessions.ConversationID) string { return "" }}, Location: time.UTC, Now: time.Now}
	views, err := view.New(p, nil, nil, command.Commands, view.Options{Outside: chat.NoTools{}, Remember: view.Remember{Recall: view.RecallAlways}})
	if err != nil {
		t.Fatal(err)
	}
	return New(Config{Shared: p, Views: views, Commands: stopWord{}, StaleAfter: 30 * time.Minute})
}

// stopWord is commands with the one word that stops a turn.
type stopWord struct{ Commands }

func (stopWord) Stops(e sessions.Event, asked []sessions.Event) []sessions.Event {
	if e.Content != "stop" {
		return nil
	}
	return asked
}

// waits makes a pending event: a letter says what, a number how many tokens.
func waits(what string, now time.Time) sessions.Event {
	e := sessions.Event{State: sessions.Pending, Content: "words", CreatedAt: now.Add(-time.Minute), Message: &sessions.Message{}}
	switch what {
	case "command":
		e.Content = "/status"
	case "unknown command":
		e.Content = "/dance"
	case "stop":
		e.Content = "stop"
	case "bare":
		e.Content = " \n"
	case "old":
		e.CreatedAt = now.Add(-31 * time.Minute)
	case "old command":
		e.Content, e.CreatedAt = "/status", now.Add(-31*time.Minute)
	case "decided":
		e.Content, e.CreatedAt, e.Message.Outcome = "/approve", now.Add(-31*time.Minute), sessions.Decided
	case "old press":
		e.Content, e.CreatedAt, e.Message.Press = "/approve", now.Add(-31*time.Minute), &sessions.Press{Button: sessions.ButtonApprove, Turn: 1}
	case "quota":
		e.Message.OverQuota, e.Content = true, ""
	case "broken":
		e.Attempts = 3
	case "tried":
		e.Attempts = 2
	case "scheduled":
		e.Message.Scheduled = &sessions.Scheduled{Kind: sessions.AskModel, DueAt: e.CreatedAt}
	case "large":
		e.Tokens = 4000
	}
	return e
}

// Which of the waiting messages a turn takes, and as what.
func TestTriage(t *testing.T) {
	t.Parallel()
	c, now := testChooser(t), time.Now()
	for _, row := range []struct {
		waiting string
		want    string
	}{
		{"", " 0"},
		{"ask,ask,ask", "ask 3"},
		{"ask,command,ask", "ask 1"},
		{"ask,stop,ask", "ask 1"},
		{"stop,ask", "ask 2"},
		{"command,command,ask", "command 1"},
		{"unknown command,ask", "command 1"},
		{"bare,bare,ask", "hello 2"},
		{"ask,bare", "ask 1"},
		{"old,old,old,ask", "stale 3"},
		{"old command,ask", "stale 1"},
		{"old press,ask", "command 1"},
		{"decided,old,ask", "command 1"},
		{"quota,quota,ask", "quota 2"},
		{"broken,broken,ask", "dead 1"},
		{"tried,ask", "ask 2"},
		{"scheduled,ask", "ask 1"},
		{"ask,scheduled", "ask 1"},
		{"scheduled,scheduled", "ask 1"},
		{"large,ask", "ask 2"},
		{"large,large,large", "ask 1"},
		{"ask,large,large", "ask 2"},
	} {
		var pending []sessions.Event
		for what := range strings.SplitSeq(row.waiting, ",") {
			if what != "" {
				pending = append(pending, waits(what, now))
			}
		}
		kind, take := c.Kinds.triage(pending, usable, now, c.cfg.Commands)
		want(t, row.waiting, fmt.Sprint(kind, " ", take), row.want)
	}
}

// One message that is larger than the budget is taken all the same: alone.
func TestTriageTakesAtLeastOne(t *testing.T) {
	t.Parallel()
	c, now := testChooser(t), time.Now()
	e := waits("ask", now)
	e.Tokens = 1 << 20
	_, take := c.Kinds.triage([]sessions.Event{e, waits("ask", now)}, usable, now, c.cfg.Commands)
	want(t, "taken", take, 1)
}

// A turn reads a bounded number of files. A burst of more is answered in several turns, and no file is left out for another message's.
func TestTriageBoundsFiles(t *testing.T) {
	t.Parallel()
	c, now := testChooser(t), time.Now()
	withFiles := func(n int, kind string) sessions.Event {
		e := waits("ask", now)
		for range n {
			e.Message.Attachments = append(e.Message.Attachments, sessions.Attachment{Kind: kind})
		}
		return e
	}
	for name, row := range map[string]struct {
		pending []sessions.Event
		want    int
	}{
		"25 of one file":          {slices.Repeat([]sessions.Event{withFiles(1, "file")}, 25), 20},
		"three of eight":          {slices.Repeat([]sessions.Event{withFiles(8, "picture")}, 3), 2},
		"one of more than it may": {[]sessions.Event{withFiles(30, "file"), waits("ask", now), withFiles(1, "file")}, 2},
		"recordings":              {slices.Repeat([]sessions.Event{withFiles(9, "audio")}, 10), 10},
	} {
		_, take := c.Kinds.triage(row.pending, usable, now, c.cfg.Commands)
		want(t, name, take, row.want)
	}
}

// The language of a word that says little is that of the conversation, which includes commands and their answers.
func TestLanguageOfATurn(t *testing.T) {
	t.Parallel()
	c, now := testChooser(t), time.Now()
	c.cfg.Shared.Languages.Preset = "en"
	e := waits("ask", now)
	e.Content, e.Message.Text, e.SenderID = "ok", "ok", "u1"
	said := sessions.Event{Role: sessions.RoleUser, SenderID: "u1", Content: "/status", Message: &sessions.Message{Text: "/status"}, CreatedAt: now.Add(-2 * time.Minute)}
	answer := sessions.Event{Role: sessions.RoleAssistant, Content: "这个对话占了三分之一。", CreatedAt: now.Add(-time.Minute)}
	made := c.open(sessions.Lease{}, sessions.View{Tail: []sessions.Event{said, answer}, Pending: []sessions.Event{e}}, 0)
	want(t, "language behind a command", made.Lang, "zh")
}
