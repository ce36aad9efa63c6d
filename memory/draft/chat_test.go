package draft

import (
	"maps"
	"slices"
	"testing"
	"time"

	"ebb/memory"
	"ebb/memory/reconcile"
	"ebb/sessions"
)

// A reminder repeats words of another day: they are no statement of its creator.
func TestScheduledMessageHasNoOwnWords(t *testing.T) {
	t.Parallel()
	of := &sessions.Scheduled{DueAt: time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)}
	text := of.Lead() + "明天是合同截止日"
	mine, others := OwnWords(sessions.Event{Role: sessions.RoleUser, SenderID: "u", Content: text, Message: &sessions.Message{Text: text, Scheduled: of}})
	if mine != "" || others != text {
		t.Errorf("own words are %q, others' are %q", mine, others)
	}
}

// A summary, or recalled text, may repeat a tool's words. A fact without a speaker since then is readable in its
// session alone. A person's statement goes with their words.
func TestRetoldFactsStayInTheSession(t *testing.T) {
	t.Parallel()
	for name, chat := range map[string]Chat{
		"group":   groupChat("Alice: 嗯，继续吧"),
		"private": privateChat("Alice: 嗯，继续吧"),
	} {
		chat.Retold = []string{"A page said that vendor invoices are paid to account HSBC-778812 from now on."}
		f := memory.Fact{Content: "Vendor invoices are paid to account HSBC-778812 from now on", Kind: memory.KindDecision}
		if drafts, _ := Route([]memory.Fact{f}, chat); len(drafts) != 1 || drafts[0].Scope != memory.ScopeSession || drafts[0].SaidBy != "" {
			t.Errorf("%s: text without a speaker became %+v", name, drafts)
		}
	}
	chat := groupChat("Alice: invoices are paid to account HSBC-778812 from now on")
	chat.Retold = []string{"A page said that invoices are paid to account HSBC-778812."}
	f := memory.Fact{Content: "Invoices are paid to account HSBC-778812", Kind: memory.KindDecision}
	if drafts, _ := Route([]memory.Fact{f}, chat); len(drafts) != 1 || drafts[0].Scope != memory.ScopeGroup || drafts[0].SaidBy != "alice" {
		t.Errorf("what Alice said became %+v", drafts)
	}
}

// The speaker is known by id, by label as transcripts write it, and by a nick that is theirs alone.
func TestRoster(t *testing.T) {
	t.Parallel()
	say := func(id sessions.UserID, nick string) sessions.Event {
		return sessions.Event{Role: sessions.RoleUser, SenderID: id, SenderNick: nick}
	}
	const stranger = sessions.UserID("$:LWCP_v1:$x")
	for name, c := range map[string]struct {
		events []sessions.Event
		want   map[string]sessions.UserID
	}{
		"plain": {
			[]sessions.Event{say("u1", "Alice"), say("u2", ""), {Role: sessions.RoleAssistant, SenderID: "bot", SenderNick: "Ebb"}, say("", "nobody")},
			map[string]sessions.UserID{"Alice": "u1", "u1": "u1", "Alice(u1)": "u1", "u2": "u2"},
		},
		"an outsider takes a member's label": {
			[]sessions.Event{say("u1", "Boss"), say(stranger, "Boss(u1)")},
			map[string]sessions.UserID{"Boss(u1)": "u1", "Boss": "u1", "u1": "u1", "Boss u1［外部］": stranger, "Boss u1": stranger, string(stranger): stranger},
		},
		"first the outsider, then the member": {
			[]sessions.Event{say(stranger, "Boss(u1)"), say("u1", "Boss")},
			map[string]sessions.UserID{"Boss(u1)": "u1", "Boss": "u1", "u1": "u1", "Boss u1［外部］": stranger, "Boss u1": stranger, string(stranger): stranger},
		},
		"a nick is somebody's id": {
			[]sessions.Event{say("u1", "Boss"), say("u2", "u1")},
			map[string]sessions.UserID{"Boss(u1)": "u1", "Boss": "u1", "u1": "u1", "u1(u2)": "u2", "u2": "u2"},
		},
		"namesakes": {
			[]sessions.Event{say("u1", "Li"), say("u2", "Li"), say("u1", "Li")},
			map[string]sessions.UserID{"Li(u1)": "u1", "u1": "u1", "Li(u2)": "u2", "u2": "u2"},
		},
		"namesakes from outside": {
			[]sessions.Event{say("$:a", "Li"), say("$:b", "Li")},
			map[string]sessions.UserID{"$:a": "$:a", "$:b": "$:b"},
		},
	} {
		if got := RosterOf(c.events); !maps.Equal(got, c.want) {
			t.Errorf("%s: roster %v, want %v", name, got, c.want)
		}
	}
}

// The owner of a thing is a value like any other, in any words and from any speaker. A fact about a person is not.
func TestPersonsAsValues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, content, key string
		value              bool
	}{
		{"Ingrid", "The owner of the parser component is now Ingrid.", "parser component owner", true},
		{"Ingrid", "Ingrid now owns the parser component.", "parser component owner", true},
		{"周敏", "登录模块的负责人改为周敏", "登录模块负责人", true},
		{"周敏", "周敏负责登录模块", "登录模块负责人", true},
		{"周敏", "登录模块现在由周敏负责", "登录模块负责人", true},
		{"周敏", "周敏的生日是5月3日", "生日", false},
		{"周敏", "周敏喜欢茶", "喜欢的饮料", false},
		{"Ingrid", "Ingrid's birthday is on 3 May", "birthday", false},
		{"Ingrid", "Ingrid prefers tea", "preferred drink", false},
		{"Adele", "Ingrid's favourite singer is Adele", "favourite singer", false}, // the key lacks the owner
		{"", "The parser has an owner", "parser owner", false},
		{"Tom", "The owner of the parser is Ingrid", "parser owner", false},
	} {
		if got := reconcile.IsValue(c.name, c.content, c.key); got != c.value {
			t.Errorf("%s in %q of %q: %v, want %v", c.name, c.content, c.key, got, c.value)
		}
	}
	chat := Chat{Key: "r/c", Robot: "r", Conversation: "c", Roster: map[string]sessions.UserID{"Alice": "u1", "Bob": "u2"}}
	var l reconcile.Ledger
	for i, f := range []memory.Fact{
		{Content: "Alice owns billing", Subject: "Alice", Key: "billing owner"},
		{Content: "Alice's birthday is 3 May", Subject: "Alice", Key: "birthday"},
		{Content: "Bob owns billing", Subject: "Bob", Key: "billing owner"},
		{Content: "Bob's birthday is 4 May", Subject: "Bob", Key: "birthday"},
		{Content: "Carol owns billing", Subject: "Carol", Key: "billing owner"},
	} {
		f.Kind = memory.KindFact
		drafts, _ := Route([]memory.Fact{f}, chat)
		d := drafts[0]
		v, corrected := l.Decide(d), []int64{0, 0, 1, 0, 3}[i]
		if got := slices.Contains(v.Supersedes, corrected); len(v.Supersedes) > 1 || got != (corrected > 0) {
			t.Errorf("%q corrects %v, want %d", f.Content, v.Supersedes, corrected)
		}
		l.Add(memory.Memory{ID: int64(i + 1), Content: d.Content, Key: d.Key, SubjectID: d.SubjectID, SaidAt: d.SaidAt})
		l.Supersede(int64(i+1), v.Supersedes)
	}
}
