package compaction_test

import (
	"testing"
	"time"

	"ebb/compaction"
	"ebb/compaction/audit"
	"ebb/compaction/compactiontest"
	"ebb/compaction/erase"
	"ebb/compaction/identify"
	"ebb/compaction/summarize"
	"ebb/compaction/tokens"
	"ebb/compaction/transcript"
	"ebb/sessions"
	"ebb/sessions/reasoning"
	"ebb/sessions/sessionstest"
)

// For any message, counting it, showing it to a summariser and comparing it with a summary take time in proportion to
// its length.
func TestGrowth(t *testing.T) {
	events := func(s string) []sessions.Event {
		return []sessions.Event{
			{Seq: 1, Role: sessions.RoleUser, SenderNick: "张伟", SenderID: "u1", Content: s, Tokens: len(s) / 3},
			{Seq: 2, Role: sessions.RoleAssistant, Content: "好的，记下了。"},
		}
	}
	count := compactiontest.Counter().Count
	for name, f := range map[string]func(string){
		"Count":    func(s string) { count(s) },
		"HeadTail": func(s string) { tokens.HeadTail(s, 1000) },
		"Clean":    func(s string) { transcript.Clean(s) },
		"Fence":    func(s string) { transcript.Fence("known", s) },
		"Identify": func(s string) { identify.Find(s) },
		"GapNote":  func(s string) { summarize.GapNote(events(s), time.UTC, "zh", 12) },
		"transcript": func(s string) {
			transcript.Writer{Counter: compactiontest.Counter(), Location: time.UTC}.Write(events(s), 10000)
		},
		"audit": func(s string) {
			src := audit.Source{Events: events(s)}
			audit.Heal("## State\nnothing", src.Read().Compare("## State\nnothing"), 200, count, "zh")
		},
		"Erasure": func(s string) {
			e := erase.New()
			e.AddStatement(s)
			e.AddKept(1, s)
			e.Heal(s+"\n- "+s, 9, 1, 1, func(string) bool { return false })
		},
		"CleanSummary": func(s string) { reasoning.Strip(s) },
		"Prune":        func(s string) { compaction.Policies["balanced"].Prune(toolTalk(s), count) },
		"Offload": func(s string) {
			compaction.Policies["offload"].Offload(compaction.Window{}, compaction.State{Tail: toolTalk(s)}, count)
		},
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
