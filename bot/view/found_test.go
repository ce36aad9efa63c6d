package view_test

import (
	"fmt"
	"slices"
	"testing"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/chat"
	"ebb/bot/reload"
	"ebb/bot/tools"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// many are tools of two servers, of some 20 tokens each.
func many() (box toolbox) {
	for i := range 200 {
		name := fmt.Sprintf("a__t%03d", i)
		if i >= 100 {
			name = fmt.Sprintf("b__t%03d", i)
		}
		box = append(box, outsideTool{llm.ToolSpec{Name: name, Description: "Does something.", Schema: map[string]any{"type": "object"}}})
	}
	return box
}

func searched(names ...string) []sessions.Event {
	text := ""
	for _, n := range names {
		text += chat.FoundLine(n) + "about it\n"
	}
	return []sessions.Event{
		{Role: sessions.RoleAssistant, ToolCalls: []sessions.ToolCall{{ID: "1", Name: chat.SearchTool, Arguments: `{"query":"x"}`}}},
		{Role: sessions.RoleTool, ToolCallID: "1", ToolName: chat.SearchTool, Content: text},
	}
}

func namesIn(specs []llm.ToolSpec) (names []string) {
	for _, s := range specs {
		names = append(names, s.Name)
	}
	return names
}

// Tools beyond the bound are offered once they were found or called, in a sorted list that other talk does not change. The size of a request
// has them.
func TestToolsAreFoundOnDemand(t *testing.T) {
	t.Parallel()
	views := bottest.NewViews(t, bot.Config{Parts: bot.Parts{Outside: many()}, SchemaTokens: 200, Finder: tools.Finder})
	s := sessions.Session{Key: "k", ConversationID: "cid"}
	f := views.Frames.FrameOf(s)
	bare := f.Offer(nil)
	if got := namesIn(bare.Tools); !slices.Contains(got, chat.SearchTool) || !slices.Contains(got, "a__t000") || slices.Contains(got, "b__t150") || !slices.IsSorted(got) {
		t.Errorf("offered are %v", got)
	}
	if f.Tokens > views.Frames.Common.Tokens+200+100 {
		t.Errorf("the fixed part has %d tokens, of which %d are no server's", f.Tokens, views.Frames.Common.Tokens)
	}
	if f.Tool("b__t150") == nil {
		t.Error("a tool that was not offered can't be called")
	}

	talk := []sessions.Event{{Role: sessions.RoleUser, Content: "hi"}, {Role: sessions.RoleAssistant, Content: "hello"}}
	tail := slices.Concat(talk, searched("b__t150", "b__t120", "c__none"), talk)
	found := f.Offer(tail, talk)
	want := append(namesIn(bare.Tools), "b__t120", "b__t150")
	slices.Sort(want)
	bottest.Want(t, "offered behind a search", namesIn(found.Tools), want)
	bottest.Want(t, "offered later", namesIn(f.Offer(slices.Concat(tail, talk, talk)).Tools), want)
	bottest.Want(t, "offered behind a compaction", namesIn(f.Offer(talk).Tools), namesIn(bare.Tools))
	bottest.Want(t, "offered behind a call", namesIn(f.Offer([]sessions.Event{{Role: sessions.RoleAssistant, ToolCalls: []sessions.ToolCall{{Name: "b__t120"}}}}).Tools),
		slices.DeleteFunc(slices.Clone(want), func(n string) bool { return n == "b__t150" }))
	v, without := sessions.View{Session: s, Tail: tail}, sessions.View{Session: s, Tail: talk}
	if grown := views.Sizes.Fixed(v) - views.Sizes.Fixed(without); grown != found.Tokens || grown == 0 {
		t.Errorf("the fixed part grows by %d, want %d", grown, found.Tokens)
	}
	if last := f.Offer(searched(namesIn(bare.Tools)...)); last.Tokens != 0 {
		t.Errorf("offered tools count twice: %d tokens", last.Tokens)
	}
}

// Found tools are bounded too. The newest ones come first.
func TestFoundToolsAreBounded(t *testing.T) {
	t.Parallel()
	views := bottest.NewViews(t, bot.Config{Parts: bot.Parts{Outside: many()}, SchemaTokens: 200, Finder: tools.Finder})
	f := views.Frames.FrameOf(sessions.Session{Key: "k", ConversationID: "cid"})
	var tail []sessions.Event
	for i := 100; i < 190; i++ {
		tail = append(tail, searched(fmt.Sprintf("b__t%03d", i))...)
	}
	found := f.Offer(tail)
	if got := namesIn(found.Tools); found.Tokens > 200 || !slices.Contains(got, "b__t189") || slices.Contains(got, "b__t100") {
		t.Errorf("%d tokens of %v", found.Tokens, got)
	}
}

// A conversation finds its own tools alone. Tools within the bound need no search.
func TestSearchKeepsToTheTools(t *testing.T) {
	t.Parallel()
	values := reload.Values{Compaction: bottest.SmallSettings, Groups: map[sessions.ConversationID]reload.Group{"one": {Tools: []string{"b"}}, "few": {Tools: []string{"a__t001"}}}}
	views := bottest.NewViews(t, bot.Config{Parts: bot.Parts{Outside: many()}, SchemaTokens: 200, Finder: tools.Finder, Values: values})
	f := views.Frames.FrameOf(sessions.Session{Key: "k", ConversationID: "one"})
	if f.Tool("a__t001") != nil || f.Tool("b__t150") == nil || !f.Offers(chat.SearchTool) {
		t.Error("a conversation has tools of another server, or lacks its own")
	}
	out, err := f.Tool(chat.SearchTool).Call(t.Context(), chat.ToolInput{Arguments: `{"query":"a__t001 t001"}`})
	if err != nil || slices.Contains(chat.FoundIn(out), "a__t001") {
		t.Errorf("found %q, %v", out, err)
	}
	if f := views.Frames.FrameOf(sessions.Session{Key: "k", ConversationID: "few"}); f.Offers(chat.SearchTool) {
		t.Error("a conversation with one tool is offered a search")
	}
}
