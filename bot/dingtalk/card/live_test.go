package card

import (
	"context"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"ebb/bot/chat"
)

func testLive(thoughts bool) *live {
	return &live{cards: NewCards(Config{Thoughts: thoughts}), shown: chat.Shown{Lang: "zh"}, news: make(chan struct{}, 1)}
}

func TestThoughtsAreShownOnlyIfConfigured(t *testing.T) {
	t.Parallel()
	l := testLive(false)
	l.Thought("悄悄话")
	if f := l.frame(); strings.Contains(f, "悄悄话") || len(l.idea) > 0 {
		t.Errorf("the frame is %q", f)
	}
}

// Thoughts are a quote of one line above the status. The next text, tool or undo ends them.
func TestThoughtsInAFrame(t *testing.T) {
	t.Parallel()
	thinking, _ := strings.CutPrefix(status("zh", ""), "\n")
	for name, tc := range map[string]struct {
		do   func(l *live)
		want string
	}{
		"first":     {func(*live) {}, "> 💭 先看\n\n" + thinking},
		"more":      {func(l *live) { l.Thought("\n\n```go\n<b>日程 @all") }, "> 💭 先看 ```go &lt;b>日程 ＠all\n\n" + thinking},
		"then text": {func(l *live) { l.Text("答案", false) }, "答案"},
		"an undo":   {func(l *live) { l.Text("", true) }, thinking},
		"a tool":    {func(l *live) { l.Tool("memory_search") }, status("zh", "memory_search")},
		"below text": {func(l *live) {
			l.Text("答案", false)
			l.Thought("再想")
		}, "答案\n\n> 💭 再想\n\n" + thinking},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := testLive(true)
			l.Thought("先看")
			tc.do(l)
			if got := l.frame(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestLongThoughtsAreCut(t *testing.T) {
	t.Parallel()
	l := testLive(true)
	for range 3000 {
		l.Thought("想法很长，")
		if len(l.idea) > 3*keptThought {
			t.Fatalf("%d bytes of thoughts are kept", len(l.idea))
		}
	}
	l.Thought("结尾")
	f := l.frame()
	if !strings.HasPrefix(f, "> 💭 … ") || !strings.Contains(f, "结尾\n\n") || len(f) > keptThought+100 || !utf8.ValidString(f) {
		t.Errorf("the frame is %q", f)
	}
}

// A turn stops its display at its end, and once more after a panic. Several stops at once return the card too.
func TestStopsOfADisplayAgree(t *testing.T) {
	t.Parallel()
	l := NewCards(Config{}).display(t.Context(), chat.Shown{Lang: "zh"}, "", func(_ context.Context, l *live) {
		<-l.ending
		l.deliveredAs("card-1")
	})
	var stops sync.WaitGroup
	for range 3 {
		stops.Go(func() {
			if track := l.Stop(); track != "card-1" {
				t.Errorf("a stop returns the card %q", track)
			}
		})
	}
	stops.Wait()
	if track := l.Stop(); track != "card-1" {
		t.Errorf("a later stop returns the card %q", track)
	}
}
