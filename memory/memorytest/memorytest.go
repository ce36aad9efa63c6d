// Package memorytest has helpers that the tests of several packages below memory share.
package memorytest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ebb/sessions"
	"ebb/sessions/llm"
)

// SaveCall returns the arguments of a memory_save call with these facts.
func SaveCall(contents ...string) string {
	var list []string
	for _, c := range contents {
		list = append(list, fmt.Sprintf(`{"content":%q,"kind":"fact"}`, c))
	}
	return `{"facts":[` + strings.Join(list, ",") + `]}`
}

// Noon is the time of the first event of [Heard].
var Noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) // a Friday

// Heard builds events of lines "name: words", or "name > quoted: words" for a reply. The names tool and bot stand for
// a tool result and the model.
func Heard(lines ...string) []sessions.Event {
	var out []sessions.Event
	for i, line := range lines {
		who, text, _ := strings.Cut(line, ": ")
		e := sessions.Event{Seq: int64(i + 1), Role: sessions.RoleUser, Content: text, CreatedAt: Noon.Add(time.Duration(i) * time.Minute)}
		who, quote, isReply := strings.Cut(who, " > ")
		switch who {
		case "tool":
			e.Role = sessions.RoleTool
		case "bot":
			e.Role = sessions.RoleAssistant
		default:
			e.SenderID, e.SenderNick = sessions.UserID(strings.ToLower(who)), who
			e.Message = &sessions.Message{Text: text}
			if isReply {
				e.Message.Quote, e.Content = &sessions.Quote{Text: quote}, "[引用 x: "+quote+"]\n"+text
			}
		}
		out = append(out, e)
	}
	return out
}

// CallModel answers each call with the next answer, at the end always with the last one.
type CallModel struct {
	Asked   []llm.Request
	Answers []func() (llm.Response, error)
}

// Generate implements llm.Model.
func (m *CallModel) Generate(_ context.Context, r llm.Request) (llm.Response, error) {
	m.Asked = append(m.Asked, r)
	return m.Answers[min(len(m.Asked), len(m.Answers))-1]()
}

// Saves is a call of memory_save.
func Saves(arguments string) []sessions.ToolCall {
	return []sessions.ToolCall{{ID: "1", Name: "memory_save", Arguments: arguments}}
}

// Args answers with a call.
func Args(a string) func() (llm.Response, error) {
	return func() (llm.Response, error) {
		return llm.Response{ToolCalls: Saves(a), Usage: sessions.Usage{Prompt: 10, Completion: 1}, Cost: 1}, nil
	}
}

// Prose answers without a call.
func Prose(text string) func() (llm.Response, error) {
	return func() (llm.Response, error) { return llm.Response{Text: text}, nil }
}

// ErrModel is the error of [Away].
var ErrModel = errors.New("model is away")

// Away fails with [ErrModel].
func Away() (llm.Response, error) { return llm.Response{}, ErrModel }
