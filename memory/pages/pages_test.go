package pages_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ebb/memory/pages"
)

var lists = []string{
	pages.ListSessions, pages.ListSessionsByKey, pages.ListCompactions, pages.ListSchedules, pages.ListSchedulesByKey, pages.ListFiles, pages.ListApprovals, pages.ListTalk, pages.ListMemories,
	pages.ListActions, pages.ListRestarts, pages.ListExpiring, pages.ListUsage, pages.ListCosts, pages.ListPeople, pages.ListPeopleByNick,
}

// places draws the places of rows: the last row of a page has at least one field of its list's order.
var places = rapid.Custom(func(t *rapid.T) pages.Place {
	p := pages.Place{
		Key: rapid.OneOf(rapid.Just(""), rapid.StringMatching(`[a-z%/$:张]{1,12}`)).Draw(t, "key"),
		ID:  rapid.Int64().Draw(t, "id"), Ended: rapid.Bool().Draw(t, "ended"),
	}
	if rapid.Bool().Draw(t, "at") {
		p.At = time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "seconds"), rapid.Int64Range(0, 999_999).Draw(t, "micros")*1000).UTC()
	}
	if p == (pages.Place{}) {
		p.ID = 1
	}
	return p
})

// Law: a cursor leads to its place in its own list, to the microsecond of the storage, and is refused by every other list.
func TestCursorsLeadToTheirPlaces(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		place, list, other := places.Draw(t, "place"), rapid.SampledFrom(lists).Draw(t, "list"), rapid.SampledFrom(lists).Draw(t, "other")
		cursor := place.Cursor(list)
		got, err := pages.ParseCursor(list, cursor, pages.Place{Key: "first"})
		if place.List = list; err != nil || got != place {
			t.Fatalf("the cursor of %+v leads to %+v (%v)", place, got, err)
		}
		if strings.Trim(cursor, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			t.Fatalf("%q needs escapes in an address", cursor)
		}
		if got, err := pages.ParseCursor(other, cursor, pages.Place{}); other != list && (!errors.Is(err, pages.ErrCursor) || got != pages.Place{}) {
			t.Fatalf("%s takes a cursor of %s: %+v (%v)", other, list, got, err)
		}
	})
}

// The lists of these tests are all that the package names.
func TestListsAreComplete(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "pages.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var declared []string
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, "List") {
			declared = append(declared, strings.Trim(v.Values[0].(*ast.BasicLit).Value, `"`))
		}
		return true
	})
	if slices.Sort(declared); !slices.Equal(declared, slices.Sorted(slices.Values(lists))) {
		t.Errorf("the package has the lists %q, the tests know %q", declared, lists)
	}
}

func TestListsHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, name := range lists {
		if seen[name] || name == "" {
			t.Errorf("two lists have the name %q", name)
		}
		seen[name] = true
	}
}

// The empty cursor is the beginning, which each list chooses.
func TestEmptyCursorIsTheBeginning(t *testing.T) {
	t.Parallel()
	first := pages.Place{ID: 1 << 62, Key: "z"}
	if got, err := pages.ParseCursor(pages.ListTalk, "", first); err != nil || got != first {
		t.Errorf("the empty cursor leads to %+v (%v), want %+v", got, err, first)
	}
}

// Cursors that no list made are refused, and never lead to the beginning: a client would read the first page again for ever.
func TestForeignCursorsAreRefused(t *testing.T) {
	t.Parallel()
	encode := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	good := pages.Place{ID: 7}.Cursor(pages.ListTalk)
	for name, cursor := range map[string]string{
		"no base64":            "not a cursor!",
		"base64 of no JSON":    encode("hello"),
		"another kind of JSON": encode(`[1,2]`),
		"null":                 encode("null"),
		"an empty object":      encode("{}"),
		"a list without place": encode(`{"l":"talk"}`),
		"a wrong type":         encode(`{"l":"talk","i":"seven"}`),
		"a number too large":   encode(`{"l":"talk","i":9223372036854775808}`),
		"a time that is none":  encode(`{"l":"talk","t":"yesterday"}`),
		"no list":              encode(`{"i":7}`),
		"another list":         pages.Place{ID: 7}.Cursor(pages.ListMemories),
		"a cut one":            good[:len(good)-3],
		"padding":              good + "==",
		"one of great length":  pages.Place{Key: strings.Repeat("k", 9<<10)}.Cursor(pages.ListTalk),
		"another text behind":  encode(`{"l":"talk","i":7} {}`),
	} {
		if got, err := pages.ParseCursor(pages.ListTalk, cursor, pages.Place{ID: 1}); !errors.Is(err, pages.ErrCursor) || got != (pages.Place{}) {
			t.Errorf("%s: leads to %+v (%v)", name, got, err)
		}
	}
}

// FuzzParseCursor holds that no text of a client breaks a list: it is refused, or it leads to a place that has a cursor.
func FuzzParseCursor(f *testing.F) {
	f.Add(pages.Place{ID: 7, Key: "k"}.Cursor(pages.ListTalk))
	f.Add("")
	f.Add("bnVsbA")
	f.Fuzz(func(t *testing.T, cursor string) {
		p, err := pages.ParseCursor(pages.ListTalk, cursor, pages.Place{ID: 1})
		if err != nil {
			return
		}
		if again, err := pages.ParseCursor(pages.ListTalk, p.Cursor(pages.ListTalk), pages.Place{}); err != nil || !again.At.Equal(p.At) || again.Key != p.Key || again.ID != p.ID || again.Ended != p.Ended {
			t.Errorf("%q leads to %+v, and its own cursor to %+v (%v)", cursor, p, again, err)
		}
	})
}

// A cursor of approvals leads behind its row, and into no other list.
func TestCursorOfApprovals(t *testing.T) {
	t.Parallel()
	place := pages.Place{At: time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC), Key: "robot/cid", ID: 3}
	cursor := place.Cursor(pages.ListApprovals)
	if got, err := pages.ParseCursor(pages.ListApprovals, cursor, pages.Place{}); err != nil || !got.At.Equal(place.At) || got.Key != place.Key || got.ID != place.ID {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := pages.ParseCursor(pages.ListSchedules, cursor, pages.Place{}); !errors.Is(err, pages.ErrCursor) {
		t.Errorf("another list takes it: %v", err)
	}
}

// A cursor is data of a client: it has the fields of its place, and nothing that a list does not order by.
func TestCursorsAreShort(t *testing.T) {
	t.Parallel()
	b, err := base64.RawURLEncoding.DecodeString(pages.Place{ID: 7}.Cursor(pages.ListTalk))
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]any{}
	if err := json.Unmarshal(b, &fields); err != nil || len(fields) != 2 || fields["l"] != pages.ListTalk || fields["i"] != 7.0 {
		t.Errorf("the cursor is %s (%v)", b, err)
	}
}

func TestFreedIsTheReduction(t *testing.T) {
	t.Parallel()
	var r pages.CompactionRow
	if r.TokensBefore, r.TokensAfter = 900, 250; r.Freed() != 650 {
		t.Errorf("%d tokens were freed, want 650", r.Freed())
	}
}
