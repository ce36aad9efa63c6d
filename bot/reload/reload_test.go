package reload

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"ebb/compaction"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// named is a model that answers with its name and the name that was asked for.
type named string

func (n named) Generate(_ context.Context, r llm.Request) (llm.Response, error) {
	return llm.Response{Text: string(n) + "/" + r.Model}, nil
}

func valuesOf(name string, turns int) Values {
	return Values{
		Model: named(name), Models: []llm.ModelChoice{{Name: name}}, Limits: sessions.Limits{PersonTurns: turns},
		Compaction: compaction.Settings{Enabled: true},
	}
}

// A turn in progress keeps the values and the model that it began with, and all other work has the newest.
func TestTurnInProgressKeepsItsValues(t *testing.T) {
	t.Parallel()
	ask := func(c *Current, key sessions.Key, model string) string {
		ctx := t.Context()
		if key != "" {
			ctx = llm.WithWaiter(ctx, key)
		}
		r, err := c.Generate(ctx, llm.Request{Model: model})
		if err != nil {
			t.Fatal(err)
		}
		return r.Text
	}
	key, other := sessions.NewKey("robot", "c1", ""), sessions.NewKey("robot", "c2", "")
	c := New(valuesOf("old", 1))
	release := c.Pin(key)
	c.Replace(valuesOf("new", 2))
	for _, one := range []struct {
		key          sessions.Key
		model, wants string
		turns        int
	}{{key, "old", "old/old", 1}, {other, "new", "new/new", 2}, {other, "old", "new/", 2}, {"", "", "new/", 2}} {
		if got := ask(c, one.key, one.model); got != one.wants {
			t.Errorf("%q asks %q, want %q", one.key, got, one.wants)
		}
		if got := c.For(one.key).Limits.PersonTurns; got != one.turns {
			t.Errorf("%q is bounded by %d turns, want %d", one.key, got, one.turns)
		}
	}
	release()
	if got := ask(c, key, "old"); got != "new/" {
		t.Errorf("after its turn the session asks %q", got)
	}
}

// Readers see one value as a whole, never parts of two.
func TestValuesAreReplacedAsAWhole(t *testing.T) {
	t.Parallel()
	c := New(valuesOf("0", 0))
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			key := sessions.NewKey("robot", sessions.ConversationID(fmt.Sprint(i)), "")
			for n := range 500 {
				if i == 0 {
					c.Replace(valuesOf(fmt.Sprint(n), n))
				}
				release := c.Pin(key)
				first := c.For(key)
				if v := c.For(key); v != first || v.Models[0].Name != fmt.Sprint(v.Limits.PersonTurns) {
					t.Errorf("the values are %v and %v", first, v)
				}
				release()
			}
		})
	}
	all.Wait()
}
