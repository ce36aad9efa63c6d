package strict

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// file has each kind of field.
type file struct {
	Name   string            `json:"name"`
	On     bool              `json:"on"`
	Count  int               `json:"count"`
	Share  float64           `json:"share"`
	Wait   time.Duration     `json:"wait"`
	Parts  []part            `json:"parts"`
	Words  map[string]string `json:"words"`
	Maybe  *float64          `json:"maybe"`
	Either either            `json:"either"`
	Later  *part             `json:"later"`
	limits `strict:"null"`
}

type limits struct {
	Most int `json:"most"`
}

type part struct {
	Key  string `json:"key"`
	Size int    `json:"size"`
}

func (p *part) SetDefaults(_ *Source, path string, n int) { *p = part{path, n} }

// either is a number, or a list of them.
type either []int

func (e *either) Decode(src *Source, path string, v hujson.Value) {
	if v.Value.Kind() == '[' {
		var many []int
		Decode(src, path, v, &many)
		*e = many
		return
	}
	one := 0
	Decode(src, path, v, &one)
	*e = either{one}
}

type rules struct{}

func (rules) Canonical(_ reflect.Type, key string) string {
	if key == "amount" {
		return "count"
	}
	return key
}

func (rules) Removed(_ reflect.Type, _, key string) string {
	if key == "colour" {
		return "all are grey"
	}
	return ""
}

func (rules) IsLater(t reflect.Type, key string) bool {
	return t == reflect.TypeFor[file]() && key == "later"
}

func (rules) Refuse(_, text string, _ reflect.Type) string {
	if strings.HasPrefix(text, "%") {
		return "got another form"
	}
	return ""
}

func open(text string, getenv func(string) string) (*Source, file) {
	src := NewSource("f.jsonc", []byte(text), getenv, rules{})
	f := file{Name: "n", Count: 1, Later: &part{}, limits: limits{Most: 9}}
	if root, ok := src.Parse(); ok {
		Decode(src, "", root, &f)
	}
	return src, f
}

func read(text string, getenv func(string) string) (file, error) {
	src, f := open(text, getenv)
	return f, src.Err()
}

func TestDecode(t *testing.T) {
	t.Parallel()
	src, got := open(`{
		// a comment
		"name": "${WHO}", "on": "${ON}", "amount": 2, "share": 0.5, "wait": "30d", "parts": [{"size": 7}, {"key": "k"}],
		"words": {"a b": "c"}, "maybe": 1.5, "either": 4, "later": {"size": 3}, "most": null, "colour": "red",
	}`, vars("WHO", "me", "ON", "true"))
	half := 1.5
	want := file{
		Name: "me", On: true, Count: 2, Share: 0.5, Wait: 30 * 24 * time.Hour, Parts: []part{{"parts[0]", 7}, {"k", 2}},
		Words: map[string]string{"a b": "c"}, Maybe: &half, Either: either{4}, Later: &part{},
	}
	if err := src.Err(); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, error %v; want %+v", got, err, want)
	}
	for path, line := range map[string]int{"name": 3, `words."a b"`: 4, "later": 4, "parts[1].size": 3, "missing": 1} {
		if n := src.Line(path); n != line {
			t.Errorf("%s is in line %d, want %d", path, n, line)
		}
	}
	if !src.IsGiven("count") || src.WrittenAs("count") != "amount" || src.IsGiven("amount") || !src.IsNull("most") || src.IsNull("count") {
		t.Error("the places of count and most are wrong")
	}
	src.Warn("count", "is few")
	src.Warn("count", "is few")
	src.Advise(false, "on", "is on")
	src.WarnOfRemoved()
	if got, want := src.Warnings(), []string{
		"f.jsonc:3:46: amount: is few", `f.jsonc:4:89: colour: does nothing any more: all are grey`, "f.jsonc:3:27: on: is on",
	}; !slices.Equal(got, want) {
		t.Errorf("warnings %q, want %q", got, want)
	}
}

// Each mistake has its place, which a ^ marks, and the value keeps its default.
func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`^`:                                "got an empty file, want an object",
		`^[]`:                              "got a list, want an object",
		`{"name": ^oops}`:                  "invalid literal: oops",
		`{"name": ^"hunter2\q"}`:           "invalid string: a bad escape",
		"{\n\"name\": \"é^\xff\"}":         "got a byte that is not UTF-8",
		`{^"nme": 1}`:                      `nme: no such key, did you mean "name"?`,
		`{^"zzzz": 1}`:                     "zzzz: no such key, want one of count, either, later, maybe, most, name,",
		`{"parts": [{}, {^"kye": "x"}]}`:   `parts[1].kye: no such key`,
		"{\"count\": 2,\n ^\"amount\": 3}": "amount: the same as count, which is given in line 1, want one of the two",
		`{"words": {"a": "", ^"a": ""}}`:   "words.a: given twice, first in line 1",
		`{"name": ^1}`:                     "name: got a number, want a string",
		`{"name": ^"%hunter2%"}`:           "name: got another form",
		`{"on": ^"true"}`:                  "on: got a string, want true or false",
		`{"on": ^"${X}"}`:                  "on: got another text from the environment, want true or false",
		`{"count": ^"${NO}"}`:              "count: is empty, want a whole number: set NO in the environment",
		`{"count": ^1.5}`:                  "count: got 1.5, want a whole number of at most 2147483647",
		`{"share": ^1e999}`:                "share: got 1e999, want a number that is not beyond all bounds",
		`{"wait": ^true}`:                  `wait: got true or false, want a duration such as "20s"`,
		`{"wait": ^"soon"}`:                `wait: got "soon", want a duration such as "20s"`,
		`{"parts": ^{}}`:                   "parts: got an object, want a list",
		`{"words": ^[]}`:                   "words: got a list, want an object",
		`{"either": [1, ^"x"]}`:            "either[1]: got a string, want a whole number",
		`{"either": ^null}`:                "either: got null, want a whole number",
		`{"name": ^"${hunter2!}"}`:         "name: got ${...} without a valid variable name",
	} {
		before, after, _ := strings.Cut(text, "^")
		col := 1 + utf8.RuneCountInString(before[strings.LastIndex(before, "\n")+1:])
		place := fmt.Sprintf("f.jsonc:%d:%d: ", 1+strings.Count(before, "\n"), col)
		got, err := read(before+after, vars("X", "hunter2"))
		if err == nil || !strings.HasPrefix(err.Error(), place+want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v, want %s", text, err, place+want)
		}
		if got.Name != "n" && !strings.Contains(text, "name") || got.On || got.Share != 0 || got.Wait != 0 {
			t.Errorf("%s: got %+v", text, got)
		}
	}
}

// Mistakes are in the order of the file. A file with more than a hundred is cut.
func TestMistakesAreListed(t *testing.T) {
	t.Parallel()
	src, _ := open(`{"name": "x", "count": 3, "share": "y"}`, vars())
	src.Between("count", 3, 4, 5)
	src.Between("count", 3, 6, 7)
	src.OneOf("name", "x", []string{"a", "b"})
	src.Positive("wait", 0)
	src.Expects("name", "no such mistake")
	src.FailVariable("V", "got nothing")
	want := `f.jsonc:1:1: wait: got 0s, want more than 0s
environment: V: got nothing
f.jsonc:1:10: name: got "x", want "a" or "b"
f.jsonc:1:24: count: got 3, want 4 to 5
f.jsonc:1:36: share: got a string, want a number`
	if got := src.Err().Error(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	_, err := read(`{"either": [`+strings.Repeat(`"",`, 80_000)+`]}`, vars())
	if all, ok := errors.AsType[*Error](err); !ok || len(all.Fields) != maxErrors {
		t.Errorf("got %.500v, want %d errors", err, maxErrors)
	}
}

// A value that a flag sets has the flag's name and no place in the file.
func TestFlagsHaveTheirNames(t *testing.T) {
	t.Parallel()
	src, _ := open(`{"count": 3}`, vars())
	src.Give("count", "--count")
	src.Want(false, "count", 3, "%d", 4)
	src.Move("count", "most")
	src.Want(false, "most", 3, "%d", 5)
	if got, want := src.Err().Error(), "--count: got 3, want 4\nf.jsonc:1:1: count: got 3, want 5"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Plain keeps numbers as they are written.
func TestPlain(t *testing.T) {
	t.Parallel()
	src := NewSource("f.jsonc", []byte(`{"a": [1.50, "${X}", null, true], "b": {}}`), vars("X", "x"), NoRules{})
	root, _ := src.Parse()
	want := map[string]any{"a": []any{json.Number("1.50"), "x", nil, true}, "b": map[string]any{}}
	if got := src.Plain("p", root); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestDurationText(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{0: "0s", time.Hour: "1h", 90 * time.Minute: "1h30m", 61 * time.Second: "1m1s", 500 * time.Millisecond: "500ms"} {
		if got := DurationText(d); got != want {
			t.Errorf("%d is %s, want %s", d, got, want)
		}
	}
}

// A key is compared without separators and case, and longer ones with up to two edits.
func TestNearest(t *testing.T) {
	t.Parallel()
	names := []string{"name", "max_tokens", "timeout"}
	for key, want := range map[string]string{"maxTokens": "max_tokens", "nmae": "", "nam": "name", "timeot": "timeout", "x": ""} {
		if got := Nearest(key, names); got != want {
			t.Errorf("%s is like %q, want %q", key, got, want)
		}
	}
}
