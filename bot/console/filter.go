package console

import (
	"slices"
	"strings"
	"time"
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

func sessionFilter(text string) (pages.SessionFilter, error) {
	p, err := parseFilter(text, "group", "state", "model")
	if err != nil {
		return pages.SessionFilter{}, err
	}
	f := pages.SessionFilter{Words: p.words, Groups: p.values["group"]}
	if f.State, err = p.one("state", pages.StateBusy, pages.StateOwed, pages.StateFailed, pages.StateDead); err != nil {
		return f, err
	}
	f.Model, err = p.one("model")
	return f, err
}

// compactionFilter reads days of the zone.
func compactionFilter(text string, zone *time.Location) (pages.CompactionFilter, error) {
	p, err := parseFilter(text, "group", "outcome", "policy", "trigger", "since", "session")
	if err != nil {
		return pages.CompactionFilter{}, err
	}
	f := pages.CompactionFilter{Words: slices.Concat(p.words, p.values["group"])}
	for key, field := range map[string]*string{"policy": &f.Policy, "trigger": &f.Trigger} {
		if *field, err = p.one(key); err != nil {
			return f, err
		}
	}
	if f.Outcome, err = p.one("outcome", "committed", "failed", "rejected", "nothing"); err != nil {
		return f, err
	}
	session, err := p.one("session")
	if err != nil {
		return f, err
	}
	f.Session = sessions.Key(session)
	day, err := p.one("since")
	if err != nil || day == "" {
		return f, err
	}
	if f.Since, err = time.ParseInLocation(time.DateOnly, day, zone); err != nil {
		return f, badRequest{code: "error.filter_day", args: []any{day}}
	}
	return f, nil
}

func memoryFilter(text string) (pages.MemoryFilter, error) {
	p, err := parseFilter(text, "scope", "person", "session", "state")
	if err != nil {
		return pages.MemoryFilter{}, err
	}
	f := pages.MemoryFilter{Words: p.words}
	if f.Scope, err = p.one("scope", "user", "group", "team", "session"); err != nil {
		return f, err
	}
	person, err := p.one("person")
	if err != nil {
		return f, err
	}
	session, err := p.one("session")
	if err != nil {
		return f, err
	}
	state, err := p.one("state", "all")
	f.Person, f.Session, f.Every = sessions.UserID(person), sessions.Key(session), state == "all"
	return f, err
}
