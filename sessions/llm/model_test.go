package llm_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"ebb/sessions"
	"ebb/sessions/llm"
)

// A bill is never negative, and cached tokens without a price of their own cost as much as others.
func TestCost(t *testing.T) {
	t.Parallel()
	price := llm.Price{In: 2, Cached: 0.5, Out: 8}
	for _, c := range []struct {
		price llm.Price
		usage sessions.Usage
		want  float64
	}{
		{price, sessions.Usage{Prompt: 1_000_000}, 2},
		{price, sessions.Usage{Prompt: 1_000_000, Cached: 400_000, Completion: 500_000}, 1.2 + 0.2 + 4},
		{llm.Price{In: 2, Out: 8}, sessions.Usage{Prompt: 1_000_000, Cached: 400_000}, 2},
		{price, sessions.Usage{Prompt: 1_000_000, Cached: 3_000_000}, 0.5}, // a provider's impossible value
		{price, sessions.Usage{Prompt: -5, Cached: -5, Completion: -5}, 0},
		{llm.Price{}, sessions.Usage{Prompt: 1_000_000, Completion: 1}, 0},
	} {
		if got := c.price.Cost(c.usage); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%+v of %+v costs %v, want %v", c.usage, c.price, got, c.want)
		}
	}
}

// The usage of a failed call is charged to the last model that used tokens.
func TestUsedModel(t *testing.T) {
	t.Parallel()
	used := sessions.Usage{Prompt: 1}
	for _, c := range []struct {
		answer llm.Response
		want   string
	}{
		{llm.Response{}, ""},
		{llm.Response{Model: "b", Parts: []llm.Part{{Model: "a", Usage: used}}}, "b"},
		{llm.Response{Parts: []llm.Part{{Model: "a"}, {Model: "b"}}}, "b"},
		{llm.Response{Parts: []llm.Part{{Model: "a", Usage: used}, {Model: "b"}}}, "a"},
		{llm.Response{Parts: []llm.Part{{Model: "a", Usage: used}, {Model: "b", Usage: used}, {Model: "c"}}}, "b"},
	} {
		if got := c.answer.UsedModel(); got != c.want {
			t.Errorf("%+v is charged to %q, want %q", c.answer, got, c.want)
		}
	}
}

// A model may call another tool too, or the tool twice, once with nothing.
func TestArguments(t *testing.T) {
	t.Parallel()
	answer := llm.Response{ToolCalls: []sessions.ToolCall{{Name: "other", Arguments: "1"}, {Name: "save"}, {Name: "save", Arguments: "2"}, {Name: "save", Arguments: "3"}}}
	for tool, want := range map[string]string{"save": "2", "other": "1", "none": ""} {
		if got := answer.Arguments(tool); got != want {
			t.Errorf("arguments of %s are %q, want %q", tool, got, want)
		}
	}
}

func TestErrorsByRemedy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err                              llm.CallError
		temporary, overflow, mayOverflow bool
	}{
		{err: llm.CallError{Class: llm.Busy, Status: 429}, temporary: true},
		{err: llm.CallError{Class: llm.Timeout}, temporary: true},
		{err: llm.CallError{Class: llm.Denied, Status: 401}},
		{err: llm.CallError{Class: llm.Denied, Status: 401, Next: true}, temporary: true}, // another model was not asked yet
		{err: llm.CallError{Class: llm.Overflow, Status: 400}, overflow: true},
		{err: llm.CallError{Class: llm.Malformed, Status: 400}, mayOverflow: true},
		{err: llm.CallError{Class: llm.Malformed, Status: 404}},
		{err: llm.CallError{Class: llm.Refused, Status: 400}},
	} {
		e := &c.err
		if got, want := [3]bool{e.Temporary(), e.Overflow(), e.MayOverflow()}, [3]bool{c.temporary, c.overflow, c.mayOverflow}; got != want {
			t.Errorf("%s, status %d: temporary, overflow, perhaps overflow: %v, want %v", e.Class, e.Status, got, want)
		}
	}
	said := &llm.CallError{Class: llm.Refused, Model: "main", Status: 400, Err: errors.New("refused"), Said: "the words of a member"}
	if got, want := said.Error(), "model main: refused (status 400): refused"; got != want {
		t.Errorf("the error is %q, want %q", got, want)
	}
	if wrapped := fmt.Errorf("ask: %w", said); llm.ClassOf(wrapped) != llm.Refused || llm.ClassOf(errors.New("other")) != llm.Busy || llm.Accepted(wrapped) {
		t.Error("the class of a wrapped error is lost, or an unknown error is not retried")
	}
}

// Work without a waiting session is upkeep.
func TestWaiter(t *testing.T) {
	t.Parallel()
	if got := llm.SessionOf(t.Context()); got != "" {
		t.Errorf("unmarked work waits for %s", got)
	}
	key := sessions.NewKey("robot", "group", "")
	if got := llm.SessionOf(llm.WithWaiter(t.Context(), key)); got != key {
		t.Errorf("the session is %s, want %s", got, key)
	}
}
