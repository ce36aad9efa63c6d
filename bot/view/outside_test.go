package view_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/chat"
	"ebb/bot/view"
	"ebb/sessions"
	"ebb/sessions/llm"
)

type outsideTool struct{ spec llm.ToolSpec }

func (t outsideTool) Spec() llm.ToolSpec                                 { return t.spec }
func (outsideTool) Call(context.Context, chat.ToolInput) (string, error) { return "", nil }

type toolbox []chat.Tool

func (b toolbox) Tools(sessions.ConversationID, sessions.ConversationType) []chat.Tool { return b }
func (toolbox) Version() int64                                                         { return 1 }
func (toolbox) MaxResultTokens(string) int                                             { return 0 }
func (toolbox) Odd(sessions.ConversationID, sessions.ConversationType) []string        { return nil }
func (toolbox) Connected(context.Context, sessions.ConversationID, sessions.ConversationType, string) bool {
	return true
}
func (toolbox) Away(sessions.ConversationID, sessions.ConversationType) []string { return nil }

// A server with endless schemas costs its own tools. The conversation keeps the built-in ones, and room for its talk.
func TestToolsOfServersLeaveRoom(t *testing.T) {
	t.Parallel()
	box := toolbox{outsideTool{llm.ToolSpec{Name: "a__small", Schema: map[string]any{"type": "object"}}}}
	for i := range 200 {
		schema := map[string]any{"type": "object", "description": strings.Repeat("many words ", 1000)}
		box = append(box, outsideTool{llm.ToolSpec{Name: fmt.Sprintf("b__%03d", i), Schema: schema}})
	}
	views, s := bottest.NewViews(t, bot.Config{Parts: bot.Parts{Outside: box}}), sessions.Session{Key: "k", ConversationID: "cid"}
	f, bare := views.Frames.FrameOf(s), views.Frames.Common
	if room := view.BodyLimit(views.Choices.Settings(s).Window.Usable()); f.Tokens > bare.Tokens+room {
		t.Errorf("the fixed part has %d tokens, want at most %d and %d", f.Tokens, bare.Tokens, room)
	}
	if !f.Offers("a__small") {
		t.Error("a small tool is not offered")
	}
}
