package compaction

import (
	"testing"
	"time"

	"ebb/sessions"
	"ebb/sessions/sessionstest"
)

// Whatever a message is made of, to count it, to show it to a summariser and to compare it with a summary takes time in
// proportion to its length.
func TestGrowth(t *testing.T) {
	events := func(s string) []sessions.Event {
		return []sessions.Event{
			{Seq: 1, Role: sessions.RoleUser, SenderNick: "张伟", SenderID: "u1", Content: s, Tokens: len(s) / 3},
			{Seq: 2, Role: sessions.RoleAssistant, Content: "好的，记下了。"},
		}
	}
	count := counter().Count
	for name, f := range map[string]func(string){
		"Count":    func(s string) { count(s) },
		"HeadTail": func(s string) { HeadTail(s, 1000) },
		"Clean":    func(s string) { Clean(s) },
		"Fence":    func(s string) { Fence("known", s) },
		"Identify": func(s string) { Identify(s) },
		"GapNote":  func(s string) { GapNote(events(s), time.UTC, "zh", 12) },
		"transcript": func(s string) {
			Scribe{Counter: counter(), Location: time.UTC}.Write(events(s), 10000)
		},
		"audit": func(s string) {
			src := AuditSource{Events: events(s)}
			Heal("## State\nnothing", AuditSummary(src, "## State\nnothing"), 200, count, "zh")
		},
		"CleanSummary": func(s string) { CleanSummary(s) },
		"Prune":        func(s string) { Policies["balanced"].Prune(toolTalk(s), count) },
		"Offload":      func(s string) { Policies["offload"].Offload(Window{}, State{Tail: toolTalk(s)}, count) },
	} {
		t.Run(name, func(t *testing.T) { sessionstest.CheckGrowth(t, name, sessionstest.LongMessage/3, f) })
	}
}

// toolTalk is a turn in which a tool's result is a text, and some turns after it.
func toolTalk(s string) []sessions.Event {
	list := []sessions.Event{
		{Seq: 1, Role: sessions.RoleUser, Content: "查一下"},
		{Seq: 2, Role: sessions.RoleAssistant, ToolCalls: []sessions.ToolCall{{ID: "c", Name: "look", Arguments: "{}"}}},
		{Seq: 3, Role: sessions.RoleTool, ToolCallID: "c", ToolName: "look", Content: s, Tokens: len(s) / 3},
		{Seq: 4, Role: sessions.RoleAssistant, Content: "好"},
	}
	for seq := int64(5); seq < 60; seq += 2 {
		list = append(list, sessions.Event{Seq: seq, Role: sessions.RoleUser, Content: "再问"}, sessions.Event{Seq: seq + 1, Role: sessions.RoleAssistant, Content: "再答"})
	}
	return list
}
