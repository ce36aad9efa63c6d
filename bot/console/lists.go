package console

import (
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"ebb/memory/pages"
	"ebb/sessions"
)

// parsed is a text filter: words, and values by key. A value with spaces stands in quotes.
type parsed struct {
	words  []string
	values map[string][]string
}

// Bounds of a filter: each word is looked for in each row.
const (
	filterRunes = 300
	filterWords = 8
)

// checkFilter refuses a text that is too long.
func checkFilter(text string) error {
	if len(text) > utf8.UTFMax*filterRunes || utf8.RuneCountInString(text) > filterRunes {
		return badRequest{code: "error.filter_long", args: []any{filterRunes}}
	}
	return nil
}

// parseFilter reads a text as in `group:支付 state:busy 发布`. Keys that the list does not have are refused by name.
func parseFilter(text string, keys ...string) (parsed, error) {
	f := parsed{values: map[string][]string{}}
	if err := checkFilter(text); err != nil {
		return f, err
	}
	all := fields(text)
	if len(all) > filterWords {
		return f, badRequest{code: "error.filter_words", args: []any{filterWords}}
	}
	for _, field := range all {
		key, value, isPair := strings.Cut(field, ":")
		if !isPair || key == "" {
			f.words = append(f.words, field)
			continue
		}
		if !slices.Contains(keys, key) {
			return f, badRequest{code: "error.filter_key", args: []any{key, strings.Join(keys, ", ")}}
		}
		if value == "" {
			return f, badRequest{code: "error.filter_value", args: []any{key}}
		}
		f.values[key] = append(f.values[key], value)
	}
	return f, nil
}

func fields(text string) []string {
	var out []string
	var b strings.Builder
	quoted := false
	for _, r := range text + " " {
		switch {
		case r == '"':
			quoted = !quoted
		case (r == ' ' || r == '\t' || r == '\u3000') && !quoted:
			if b.Len() > 0 {
				out = append(out, b.String())
			}
			b.Reset()
		default:
			b.WriteRune(r)
		}
	}
	if b.Len() > 0 { // a quote without its end
		out = append(out, strings.TrimSuffix(b.String(), " "))
	}
	return out
}

// one returns the value of a key that may be given once. With allowed, it refuses other values.
func (f parsed) one(key string, allowed ...string) (string, error) {
	values := f.values[key]
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", badRequest{code: "error.filter_twice", args: []any{key}}
	case len(allowed) > 0 && !slices.Contains(allowed, values[0]):
		return "", badRequest{code: "error.filter_oneof", args: []any{key, strings.Join(allowed, ", ")}}
	}
	return values[0], nil
}

// Rows of a page: of a list, and of a conversation.
const (
	listRows = 50
	talkRows = 60
)

type listView[T any] struct {
	Filter string
	Wrong  string // reason of a refused filter or cursor
	Rows   []T
	Next   string // address; empty at the end
}

func list[T any](r *request, read func(p pages.Page) ([]T, string, error)) (listView[T], error) {
	v := listView[T]{Filter: r.FormValue("q")}
	rows, next, err := read(pages.Page{Limit: listRows, Cursor: r.FormValue("cursor")})
	if err != nil {
		return v, err
	}
	v.Rows = rows
	if next != "" {
		v.Next = r.URL.Path + "?" + url.Values{"q": {v.Filter}, "cursor": {next}}.Encode()
	}
	return v, nil
}

// showList shows a page with a filter. A refused filter or cursor leaves the page without rows, so that the reader can
// correct the filter.
func showList[F, T any](w http.ResponseWriter, r *request, page string, parse func(string) (F, error), read func(F, pages.Page) ([]T, string, error)) error {
	v, status := listView[T]{Filter: r.FormValue("q")}, http.StatusOK
	f, err := parse(v.Filter)
	if err == nil {
		v, err = list(r, func(p pages.Page) ([]T, string, error) { return read(f, p) })
	}
	if err != nil {
		var bad badRequest
		if status, bad = statusOf(err); status != http.StatusBadRequest {
			return err
		}
		v.Wrong = r.words.T(bad.code, bad.args...)
	}
	r.showAs(w, status, page, v)
	return nil
}

// titles are those of the conversations of some rows; it reads each once.
func titles(r *request, keys iter.Seq[sessions.Key]) (map[sessions.Key]string, error) {
	all := map[sessions.Key]string{}
	for key := range keys {
		if _, known := all[key]; known || key == "" {
			continue
		}
		s, err := r.lists.Session(r.Context(), key)
		if err != nil && !isNotFound(err) {
			return nil, err
		}
		all[key] = s.Title
	}
	return all, nil
}

// each converts all rows; the result is never null in JSON.
func each[T, V any](list []T, row func(T) V) []any {
	out := make([]any, len(list))
	for i, one := range list {
		out[i] = row(one)
	}
	return out
}
