package bot

import (
	"fmt"
	"strings"
	"testing/synctest"
)

// fill has the conversation talk until its context holds about a number of tokens, and waits for the upkeep after it.
func (w *world) fill(tokens int) {
	w.t.Helper()
	for i := 0; w.tokens() < tokens; i++ {
		if i > 1000 {
			w.t.Errorf("the context does not reach %d tokens", tokens)
			return
		}
		w.post(said(fmt.Sprintf("fill%d-%d", w.store.called("accept"), i), "alice", prose(i, 100)))
		synctest.Wait()
	}
}

func (w *world) tokens() int {
	s, err := w.store.mem.Session(w.t.Context(), group)
	if err != nil {
		return 0
	}
	return s.TotalTokens
}

// prose is n words that differ with i: about a token each.
func prose(i, n int) string {
	words := []string{"release", "server", "ticket", "report", "garden", "window", "silver", "market", "number", "planet", "letter", "bridge"}
	var b strings.Builder
	for k := range n {
		b.WriteString(words[(i*7+k*(1+i%5))%len(words)] + " ")
	}
	return b.String()
}
