package sessions_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ebb/sessions"
)

func refused(parts ...sessions.WithheldPart) sessions.Refusal { return sessions.Refusal{Parts: parts} }

// A mark holds for its model alone, and a later one keeps the parts of the earlier ones.
func TestWithheldMarksAdd(t *testing.T) {
	t.Parallel()
	var none sessions.Withheld
	one := none.With("a", refused(sessions.WithheldQuote))
	two := one.With("a", sessions.Refusal{Parts: []sessions.WithheldPart{sessions.WithheldBody}, Class: "later"}).With("b", refused(sessions.WithheldNick))
	for _, c := range []struct {
		marks sessions.Withheld
		model sessions.ModelID
		part  sessions.WithheldPart
		want  bool
	}{
		{none, "a", sessions.WithheldBody, false},
		{one, "a", sessions.WithheldQuote, true},
		{one, "a", sessions.WithheldBody, false}, // the second mark left the first as it was
		{one, "b", sessions.WithheldQuote, false},
		{two, "a", sessions.WithheldBody, true},
		{two, "a", sessions.WithheldQuote, true},
		{two, "b", sessions.WithheldNick, true},
		{two, "b", sessions.WithheldBody, false},
	} {
		if got := c.marks.From(c.model, c.part); got != c.want {
			t.Errorf("%v leaves %s out for %s: %v", c.marks, c.part, c.model, got)
		}
	}
	if again := two.With("a", refused(sessions.WithheldBody)); len(again["a"].Parts) != 2 {
		t.Errorf("a part is marked twice: %v", again)
	}
	if two["a"].Class != "later" {
		t.Errorf("the class is %q, want that of the last refusal", two["a"].Class)
	}
}

// An event that a model refuses in part keeps the rest, and no part of what it refuses.
func TestWithoutParts(t *testing.T) {
	t.Parallel()
	quote := &sessions.Quote{Nick: "李", Text: "quoted"}
	lead := sessions.QuoteLead("李", "quoted")
	event := sessions.Event{
		Role: sessions.RoleUser, Content: lead + "own words", SenderNick: "nick", Tokens: 500, Blob: "b",
		ToolCalls: []sessions.ToolCall{{ID: "c"}}, Message: &sessions.Message{Text: lead + "own words", Quote: quote},
	}
	for _, c := range []struct {
		part   sessions.WithheldPart
		check  func(sessions.Event) bool
		leaves string
	}{
		{sessions.WithheldBody, func(e sessions.Event) bool {
			return e.Content == sessions.WithheldText && e.Tokens == sessions.WithheldTokens && e.ToolCalls == nil && e.Blob == "" && e.Message.Text == e.Content && e.Message.Quote == nil
		}, "the note alone"},
		{sessions.WithheldQuote, func(e sessions.Event) bool {
			return e.Content == "own words" && e.Message.Quote == nil && e.Message.Text == "own words" && e.SenderNick == "nick"
		}, "the own words"},
		{sessions.WithheldNick, func(e sessions.Event) bool {
			return e.SenderNick == "" && e.Content == event.Content && e.Message.Quote == quote
		}, "all but the nick"},
		{sessions.WithheldTitle, func(e sessions.Event) bool { return reflect.DeepEqual(e, event) }, "the event, since a title is the conversation's"},
	} {
		if got := event.Without(c.part); !c.check(got) {
			t.Errorf("without its %s the event is %+v, want %s", c.part, got, c.leaves)
		}
	}
	if event.Message.Quote != quote || event.Content != lead+"own words" {
		t.Errorf("the event itself changed: %+v", event)
	}
	if short := (sessions.Event{Content: "x", Tokens: 2}).Without(sessions.WithheldBody); short.Tokens != 2 {
		t.Errorf("a note for 2 tokens counts %d", short.Tokens)
	}
}

// Law: what a model is shown has no part that it refuses, events that it does not refuse stay as they are, and so do the given ones.
func TestReadableLeavesOutWhatIsRefused(t *testing.T) {
	t.Parallel()
	events := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) sessions.Event {
		e := sessions.Event{
			Role: sessions.RoleUser, Content: "text", SenderNick: rapid.SampledFrom([]string{"", "A", "B"}).Draw(t, "nick"),
			Message: &sessions.Message{Text: "text"},
		}
		if rapid.Bool().Draw(t, "quotes") {
			e.Content = sessions.QuoteLead("C", "quoted") + e.Content
			e.Message = &sessions.Message{Text: e.Content, Quote: &sessions.Quote{Nick: "C", Text: "quoted"}}
		}
		for _, part := range []sessions.WithheldPart{sessions.WithheldBody, sessions.WithheldQuote, sessions.WithheldNick} {
			if rapid.IntRange(0, 3).Draw(t, "refuses") == 0 {
				e.Withheld = e.Withheld.With(rapid.SampledFrom([]sessions.ModelID{"m", "other"}).Draw(t, "model"), refused(part))
			}
		}
		return e
	}), 0, 8)
	rapid.Check(t, func(t *rapid.T) {
		given := events.Draw(t, "events")
		before := slices.Clone(given)
		nicks := sessions.WithheldNicks(given, "m")
		for i, e := range sessions.Readable(given, "m") {
			from := func(p sessions.WithheldPart) bool { return given[i].Withheld.From("m", p) }
			switch {
			case from(sessions.WithheldBody) && e.Content != sessions.WithheldText:
				t.Fatalf("the refused body is %q", e.Content)
			case from(sessions.WithheldQuote) && (e.Message.Quote != nil || e.Content != "text" && e.Content != sessions.WithheldText):
				t.Fatalf("the refused quote is in %+v", e)
			case nicks[given[i].SenderNick] && e.SenderNick != "":
				t.Fatalf("the refused nick %s is shown", e.SenderNick)
			case len(given[i].Withheld["m"].Parts) == 0 && !nicks[given[i].SenderNick] && !reflect.DeepEqual(e, given[i]):
				t.Fatalf("an event that is not refused is %+v, and was %+v", e, given[i])
			}
		}
		if !reflect.DeepEqual(given, before) {
			t.Fatal("the given events changed")
		}
	})
}

// Law: a suspicion that joins an earlier one covers each row that either of them covers, of its own model.
func TestSuspicionsJoin(t *testing.T) {
	t.Parallel()
	suspicion := rapid.Custom(func(t *rapid.T) *sessions.Suspicion {
		s := &sessions.Suspicion{
			Model:     rapid.SampledFrom([]sessions.ModelID{"m", "m", "m", "other"}).Draw(t, "model"),
			Summaries: rapid.Bool().Draw(t, "summaries"), Pinned: rapid.Bool().Draw(t, "pinned"),
			Facts:  rapid.SliceOfN(rapid.Int64Range(1, 9), 0, 3).Draw(t, "facts"),
			Events: rapid.SliceOfN(rapid.Int64Range(1, 9), 0, 3).Draw(t, "events"),
		}
		if rapid.Bool().Draw(t, "range") {
			s.From = rapid.Int64Range(10, 20).Draw(t, "from")
			s.Through = s.From + rapid.Int64Range(0, 5).Draw(t, "long")
		}
		return s
	})
	rapid.Check(t, func(t *rapid.T) {
		newer, older := suspicion.Draw(t, "newer"), suspicion.Draw(t, "older")
		both := newer.Join(older)
		if both.Model != newer.Model {
			t.Fatalf("the model is %s, want %s", both.Model, newer.Model)
		}
		older = map[bool]*sessions.Suspicion{true: older}[older.Model == newer.Model] // another model's is dropped
		for row := range int64(30) {
			if want := newer.Covers(newer.Model, row) || older.Covers(newer.Model, row); want && !both.Covers(newer.Model, row) {
				t.Fatalf("event %d is not covered by %+v", row, both)
			}
			if want := newer.CoversFact(newer.Model, row) || older.CoversFact(newer.Model, row); want != both.CoversFact(newer.Model, row) {
				t.Fatalf("fact %d: %+v", row, both)
			}
		}
		if older != nil && (both.Summaries != (newer.Summaries || older.Summaries) || both.Pinned != (newer.Pinned || older.Pinned)) {
			t.Fatalf("summaries and pinned memory: %+v", both)
		}
	})
}

func TestSuspicionOfAnotherModel(t *testing.T) {
	t.Parallel()
	at := time.Unix(1, 0)
	s := &sessions.Suspicion{Model: "m", At: at, From: 2, Through: 3}
	events := []sessions.Event{{Seq: 1, Content: "a", SenderNick: "n"}, {Seq: 2, Content: "b", SenderNick: "n"}, {Content: "waiting"}}
	if got := s.Readable(events, "other"); !reflect.DeepEqual(got, events) {
		t.Errorf("another model is shown %+v", got)
	}
	got := s.Readable(events, "m")
	if got[0].Content != "a" || got[1].Content != sessions.WithheldText || got[2].Content != "waiting" || got[0].SenderNick != "" {
		t.Errorf("the model is shown %+v, want a note for the second, and no nick", got)
	}
	var none *sessions.Suspicion
	if none.Concerns("") || none.Covers("", 1) || none.CoversFact("", 1) || none.Join(s) != nil {
		t.Error("no suspicion covers something")
	}
	w := sessions.Withholding{Settles: s}
	if !w.Replaces(&sessions.Suspicion{Model: "other", At: at}) || w.Replaces(&sessions.Suspicion{At: at.Add(1)}) || w.Replaces(nil) || (sessions.Withholding{}).Replaces(s) {
		t.Error("a search settles another suspicion than its own, or not its own")
	}
}
