package bottest

import (
	"fmt"
	"strings"

	"ebb/bot/view"
	"ebb/compaction/tokens"
	"ebb/sessions/llm"
)

// Transcript is a request as a golden file shows it.
func Transcript(msgs []llm.Message) string {
	var b strings.Builder
	for _, m := range msgs {
		fmt.Fprintf(&b, "== %s %s\n%s\n", m.Role, m.ToolCallID, m.Content)
		for _, c := range m.ToolCalls {
			fmt.Fprintf(&b, "-> %s %s %s\n", c.ID, c.Name, c.Arguments)
		}
	}
	return b.String()
}

// Illegal says what a provider would not take about a request, or nothing (P16, P17, P18, P24).
func Illegal(msgs []llm.Message) string {
	open, users := map[string]bool{}, 0
	for i, m := range msgs {
		switch {
		case (m.Role == "system") != (i == 0):
			return fmt.Sprintf("system message at %d", i)
		case m.Role == "tool" && !open[m.ToolCallID]:
			return fmt.Sprintf("message %d is a result without its call", i)
		case m.Role == "tool":
			delete(open, m.ToolCallID)
		case len(open) > 0:
			return fmt.Sprintf("message %d comes before the results of %v", i, open)
		case m.Role == "assistant" && m.Content == "" && len(m.ToolCalls) == 0:
			return fmt.Sprintf("message %d says nothing", i)
		case m.Role == "user":
			users++
		}
		for _, c := range m.ToolCalls {
			open[c.ID] = true
		}
	}
	if len(open) > 0 || users == 0 {
		return fmt.Sprintf("%d calls without result, %d user messages", len(open), users)
	}
	return ""
}

// RequestTokens counts a request from its messages alone, as a provider would.
func RequestTokens(views *view.Builder, msgs []llm.Message) int {
	n := views.Frames.Common.Tokens
	for _, m := range msgs[1:] { // the first is the system prompt
		n += Counter.Count(m.Content) + tokens.MessageOverhead
		for _, c := range m.ToolCalls {
			n += Counter.Count(c.Arguments) + tokens.MessageOverhead
		}
	}
	return n
}
