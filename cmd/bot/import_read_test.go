package main

import (
	"strings"
	"testing"
	"time"

	"ebb/sessions"
)

func TestReadKept(t *testing.T) {
	t.Parallel()
	const whole = `{
  "messages": [
    {"role": "user", "content": "端口是多少?", "timestamp": "2026-03-05T10:00:00", "sender": "张伟"},
    {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "c1", "name": "look", "content": "8443"},
    {"role": "assistant", "content": "8443"}
  ],
  "last_consolidated": 2, "last_consolidated_at": "2026-03-06T10:00:00Z", "summary": " 聊了端口 ", "metadata": {"x": 1}
}`
	lines := strings.Join([]string{
		`{"_type": "metadata", "created_at": "x", "last_consolidated": 2, "last_consolidated_at": "2026-03-06T10:00:00Z", "summary": "聊了端口"}`,
		`{"role": "user", "content": "端口是多少?", "timestamp": "2026-03-05 10:00:00.000", "sender": "张伟"}`, ``,
		`{"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "look", "arguments": "{}"}}]}`,
		`{"role": "tool", "tool_call_id": "c1", "name": "look", "content": "8443"}`,
		`{"role": "assistant", "content": "8443"}`,
	}, "\n")
	zone := time.FixedZone("", 8*3600)
	for name, text := range map[string]string{"object": whole, "lines": lines} {
		k, err := readKept("old", []byte(text), zone)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(k.messages) != 4 || k.consolidated != 2 || k.summary != "聊了端口" || k.consolidatedAt.IsZero() {
			t.Fatalf("%s: %d messages, %d consolidated at %v, summary %q", name, len(k.messages), k.consolidated, k.consolidatedAt, k.summary)
		}
		first, call, result := k.messages[0], k.messages[1].event, k.messages[2].event
		if want := time.Date(2026, 3, 5, 2, 0, 0, 0, time.UTC); !first.sentAt.Equal(want) || first.sender != "张伟" || first.event.Content != "端口是多少?" {
			t.Errorf("%s: the first message is %+v, want one of %v", name, first, want)
		}
		if len(call.ToolCalls) != 1 || call.ToolCalls[0].Name != "look" || result.ToolCallID != "c1" || result.ToolName != "look" || result.Role != sessions.RoleTool {
			t.Errorf("%s: the call is %+v, its result %+v", name, call, result)
		}
	}
	// A field that an older bot did not have yet.
	for name, text := range map[string]string{
		"object": `{"messages": [{"role": "user", "content": ""}]}`, "lines": `{"role": "user", "content": "a"}`, "metadata": "{\"_type\": \"metadata\"}\n{\"role\": \"user\", \"content\": \"a\"}",
	} {
		if k, err := readKept("old", []byte(text), zone); err != nil || len(k.messages) != 1 || k.consolidated != 0 {
			t.Errorf("%s without new fields: %+v, %v", name, k, err)
		}
	}
}

func TestReadKeptNamesTheLine(t *testing.T) {
	t.Parallel()
	const user = `{"role": "user", "content": "a"}`
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", "", "old:1:1: got an empty file, want an object"},
		{"no message", `{"messages": []}`, "old:1: messages: there are none"},
		{"a log", "GET / 200\nGET / 200", "old:1:1: "},
		{"broken object", "{\n\"messages\": [\n{\"role\": \"user\",, }]}", "old:3:"},
		{"not UTF-8", user + "\n\xff", "old:2: got a byte that is not UTF-8"},
		{"messages", `{"messages": 3}`, "old:1: messages: got a number, want a list"},
		{"broken line", user + "\n{\"role\": ", "old:2: unexpected end of JSON input"},
		{"number for text", user + "\n" + `{"role": "user", "content": 3}`, "old:2: content: got number, want string"},
		{"role", "{\"messages\": [\n" + user + ",\n" + `{"role": "system", "content": "a"}]}`, `old:3: messages[1].role: got "system", want user, assistant or tool`},
		{"one line", `{"messages": [` + user + `, {"role": "user"}]}`, "old:1: messages[1].content: is missing"},
		{"one line, no object", `{"messages": [3]}`, "old:1: messages[0]: got number, want an object"},
		{"one line, a call without a result", `{"messages": [` + user + `, {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f"}}]}]}`, `old:1: messages[1].tool_calls: the call "c"`},
		{"no role", `{"text": "a"}`, `old:1: role: got ""`},
		{"no content", user + "\n" + `{"role": "assistant"}`, "old:2: content: is missing"},
		{"empty answer", user + "\n" + `{"role": "assistant", "content": " "}`, "old:2: content: is empty"},
		{"time", `{"role": "user", "content": "a", "timestamp": "gestern"}`, `old:1: timestamp: got "gestern", want a time such as`},
		{"result without call", user + "\n" + `{"role": "tool", "tool_call_id": "x", "content": "a"}`, `old:2: tool_call_id: got "x"`},
		{"call without result", user + "\n" + `{"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f"}}]}` + "\n" + user, `old:3: role: got "user" before the result of the tool call "c"`},
		{"last call without result", user + "\n" + `{"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f"}}]}`, `old:2: tool_calls: the call "c" has no result`},
		{"nobody asked", `{"role": "assistant", "content": "a"}`, "old:1: messages: none is a user's"},
		{"consolidated", "{\"messages\": [" + user + "],\n\"last_consolidated\": 2}", "old:2: last_consolidated: got 2, want 0 to the number of messages (1)"},
		{"consolidated below nothing", `{"_type": "metadata", "last_consolidated": -1}` + "\n" + user, "old:1: last_consolidated: got -1"},
		{"consolidated as text", `{"_type": "metadata", "last_consolidated": "1"}` + "\n" + user, "old:1: last_consolidated: got string, want int"},
		{"consolidated when", `{"_type": "metadata", "last_consolidated_at": "x"}` + "\n" + user, `old:1: last_consolidated_at: got "x"`},
		{"summary of nothing", "{\"messages\": [" + user + "],\n\n\"summary\": \"a\"}", "old:3: summary: there is one, but last_consolidated is 0"},
		{"late metadata", user + "\n" + `{"_type": "metadata"}`, "old:2: _type: got metadata after a message"},
	} {
		_, err := readKept("old", []byte(tt.text), time.UTC)
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.want)
		}
	}
}

// FuzzReadKept states that no file makes the reader panic, and that a refusal names a line of the file. An accepted
// file can be stored: calls and their results stand together, and summaries cover existing messages only.
func FuzzReadKept(f *testing.F) {
	for _, seed := range []string{
		"", "{}", `{"messages": [{"role": "user", "content": "a"}], "last_consolidated": 1}`, "{\"_type\": \"metadata\"}\n{\"role\": \"user\", \"content\": \"a\"}",
		`{"messages": [{"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f"}}]}, {"role": "tool", "tool_call_id": "c", "content": ""}]}`,
		`// {`, "[\n[", `{"messages": {`, "\xef\xbb\xbf{}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		k, err := readKept("old", data, time.UTC)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "old:") {
				t.Errorf("%q names no line", err)
			}
			return
		}
		open := map[string]int{}
		for _, m := range k.messages {
			for _, c := range m.event.ToolCalls {
				open[c.ID]++
			}
			if m.event.Role == sessions.RoleTool {
				open[m.event.ToolCallID]--
			}
		}
		for id, n := range open {
			if n != 0 {
				t.Errorf("the call %q has %d results too few", id, n)
			}
		}
		if k.consolidated < 0 || k.consolidated > len(k.messages) {
			t.Errorf("%d of %d messages are summarised", k.consolidated, len(k.messages))
		}
	})
}
