package search_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ebb/memory"
	"ebb/memory/show"
	"ebb/sessions"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// A person's private statement is never read out to other people, nor one group's to another.
func TestSearchKeepsScopes(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	private := storetest.NewChat(t, s, "dm-zhang", "zhang", true)
	stranger := storetest.NewChat(t, s, "dm-li", "li", true)
	first := storetest.NewChat(t, s, "group-1", "zhang", false)
	second := storetest.NewChat(t, s, "group-2", "zhang", false)
	private.Say("zhang", "needle said in private")
	first.Say("zhang", "needle said in group one")

	private.Save(storetest.FactAbout("zhang", "needle: private fact about Zhang"))
	private.Save(memory.Draft{Scope: memory.ScopeSession, ScopeID: string(private.Reader.Key), Kind: memory.KindTask, Content: "needle: task of the private chat"})
	private.Save(memory.Draft{Scope: memory.ScopeTeam, ScopeID: string(storetest.Robot), Kind: memory.KindDecision, Content: "needle: team rule"})
	first.Save(storetest.InGroup(first, storetest.FactAbout("zhang", "needle: said by Zhang in group one")), storetest.GroupFact(first, "needle: group one's fact"))
	first.Save(storetest.InGroup(first, storetest.FactAbout("zhang", "needle: private fact about Zhang"))) // said in the group too

	for _, tt := range []struct {
		name string
		c    *storetest.Chat
		want []string
	}{
		{"the person in private", private, []string{
			"needle said in private", "needle: private fact about Zhang", "needle: said by Zhang in group one",
			"needle: task of the private chat", "needle: team rule",
		}},
		{"another person in private", stranger, []string{"needle: team rule"}},
		{"the group where it was said", first, []string{
			"needle said in group one", "needle: group one's fact", "needle: private fact about Zhang",
			"needle: said by Zhang in group one", "needle: team rule",
		}},
		{"another group", second, []string{"needle: team rule"}},
	} {
		var got []string
		for _, h := range tt.c.Search("needle") {
			got = append(got, h.Content)
		}
		slices.Sort(got)
		slices.Sort(tt.want)
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s finds %q, want %q", tt.name, got, tt.want)
		}
	}

	hits := private.Search("private fact Zhang")
	if len(hits) == 0 || !strings.HasPrefix(hits[0].Path, "memory/user/") || hits[0].Who != "said by zhang" {
		t.Fatalf("the first find is %+v", hits)
	}
	if text, err := show.Get(t.Context(), storetest.Library{Store: s.Facts, Digests: s.Digests}, private.Reader, hits[0].Path, 1, show.LogReader{Location: time.UTC}); err != nil || !strings.Contains(text, hits[0].Content) {
		t.Errorf("the path leads to %q (%v)", text, err)
	}
	if text, err := show.Get(t.Context(), storetest.Library{Store: s.Facts, Digests: s.Digests}, stranger.Reader, hits[0].Path, 1, show.LogReader{Location: time.UTC}); err == nil {
		t.Errorf("another person reads the memory by its number: %q", text)
	}
}

func TestSearchRanks(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "zhang", false)
	for _, text := range []string{"上海项目的预算是两百万", "北京的预算未定", "Order ORD-2041 ships to 上海 by Ｆｒｉｄａｙ", "100% done_it"} {
		c.Say("zhang", text)
	}
	for query, want := range map[string]string{
		"上海预算":        "上海项目的预算是两百万",
		"上海的预算是多少？":   "上海项目的预算是两百万",
		"北京 预算":       "北京的预算未定",
		"ord-2041":    "Order ORD-2041 ships to 上海 by Ｆｒｉｄａｙ",
		"ORDER ships": "Order ORD-2041 ships to 上海 by Ｆｒｉｄａｙ",
		"DONE":        "100% done_it",
	} {
		hits := c.Search(query)
		if len(hits) == 0 || hits[0].Content != want {
			t.Errorf("%q finds %+v, want %q first", query, hits, want)
			continue
		}
		if h := hits[0]; !strings.HasPrefix(h.Path, "session_events/") || h.Who != "zhang" || h.At.IsZero() || h.Score <= 0 || h.Score > 1 {
			t.Errorf("%q finds %+v", query, h)
		}
	}
	for _, query := range []string{"", "%", "_", "。，！", "完全不同", "%%'; DROP TABLE memories; --"} {
		if hits := c.Search(query); len(hits) != 0 {
			t.Errorf("%q finds %+v", query, hits)
		}
	}
}

func TestHistoryAndRange(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "zhang", false)
	for i := range 5 {
		c.Say("zhang", fmt.Sprintf("第%d次 release", i))
	}
	if _, err := s.Compactions.Compact(t.Context(), c.Lease, storetest.SummaryOf(0, 6, "早先的对话")); err != nil {
		t.Fatal(err)
	}
	history := func(query string, through int64, limit int) []int64 {
		t.Helper()
		events, err := s.Search.History(t.Context(), c.Reader.Key, memory.LogQuery{Words: query, Through: through, Limit: limit, Chars: 2000})
		if err != nil {
			t.Fatal(err)
		}
		var seqs []int64
		for _, e := range events.Events {
			seqs = append(seqs, e.Seq)
		}
		return seqs
	}
	if got := history("", 0, 3); !slices.Equal(got, []int64{12, 11, 10}) {
		t.Errorf("all history, newest first, is %v", got)
	}
	if got := history("RELEASE", 8, 2); !slices.Equal(got, []int64{7, 5}) {
		t.Errorf("releases up to 8 are %v, want 7 and the archived 5", got)
	}
	if got := history("nothing like it", 0, 5); len(got) != 0 {
		t.Errorf("words without an event are found at %v", got)
	}
	c.Answer("zhang", "release 的会议", sessions.TurnResult{Command: true})
	if got := history("", 0, 3); !slices.Equal(got, []int64{12, 11, 10}) {
		t.Errorf("the history has a reminder: %v", got)
	}
	if got := history("会议", 0, 3); len(got) != 0 {
		t.Errorf("a search finds a reminder: %v", got)
	}
	if whole, err := s.Search.Range(t.Context(), c.Reader.Key, 12, 14, 4); err != nil || len(whole) != 2 {
		t.Errorf("the range of the reminder is %+v (%v)", whole, err)
	}
	events, err := s.Search.Range(t.Context(), c.Reader.Key, 2, 7, 4)
	if err != nil || len(events) != 4 || events[0].Seq != 3 || events[3].Seq != 6 || !events[0].Archived {
		t.Errorf("the range is %+v (%v), want 3 to 6, archived", events, err)
	}
}
