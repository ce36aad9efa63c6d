package when

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the zones of the tests

	"ebb/sessions/rules"
	"ebb/sessions/rules/rulestest"
)

// reasons are the names of errors in testdata/phrases.tsv.
var reasons = map[string]error{"unknown": ErrUnknown, "past": ErrPast, "soon": ErrSoon, "far": ErrFar, "unsupported": ErrUnsupported}

const tableTime = "2006-01-02 15:04:05"

// phraseRow is a line of testdata/phrases.tsv.
type phraseRow struct {
	line         int
	now          time.Time
	phrase, want string
	rest         string
}

// readPhrases reads the table. A line "now" holds for those below it.
func readPhrases(tb testing.TB) []phraseRow {
	tb.Helper()
	text, err := os.ReadFile("testdata/phrases.tsv")
	if err != nil {
		tb.Fatal(err)
	}
	var rows []phraseRow
	var now time.Time
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, "\t")
		if f[0] == "now" {
			zone, err := time.LoadLocation(f[2])
			if err != nil {
				tb.Fatal(err)
			}
			if now, err = time.ParseInLocation(tableTime, f[1], zone); err != nil {
				tb.Fatal(err)
			}
			continue
		}
		if len(f) != 3 {
			tb.Fatalf("line %d has %d columns", i+1, len(f))
		}
		rows = append(rows, phraseRow{i + 1, now, f[0], f[1], f[2]})
	}
	return rows
}

// outcome writes the due times or the error of a phrase like the table.
func (r phraseRow) outcome() (outcome, rest string) {
	spec, rest, err := Parse(r.phrase, r.now)
	if failure, ok := errors.AsType[*Error](err); ok {
		for name, reason := range reasons {
			if errors.Is(err, reason) {
				return fmt.Sprintf("%s@%d", name, failure.At), rest
			}
		}
	}
	if err != nil {
		return err.Error(), rest
	}
	var times []string
	for t, n := r.now, 0; n < 3; n++ {
		var ok bool
		if t, ok = spec.Next(t); !ok {
			break
		}
		times = append(times, t.In(r.now.Location()).Format(tableTime))
	}
	return strings.Join(times, ", "), rest
}

func TestPhrases(t *testing.T) {
	t.Parallel()
	rows := readPhrases(t)
	if len(rows) < 120 {
		t.Errorf("the table has %d phrases", len(rows))
	}
	for _, r := range rows {
		if got, rest := r.outcome(); got != r.want || rest != r.rest {
			t.Errorf("line %d: %q is %s, rest %q; want %s, rest %q", r.line, r.phrase, got, rest, r.want, r.rest)
		}
	}
}

var shortHour = regexp.MustCompile(`(^|[^0-9:])[0-9]:[0-9]`)

// A spec of the table survives its stored form, and its words in both languages.
func TestPhrasesAsStoredAndInWords(t *testing.T) {
	t.Parallel()
	for _, r := range readPhrases(t) {
		spec, _, err := Parse(r.phrase, r.now)
		if err != nil {
			continue
		}
		if again, err := Read(spec.String()); err != nil || again != spec {
			t.Errorf("line %d: %s is read as %s, %v", r.line, spec, again, err)
		}
		for _, lang := range []string{"zh", "en"} {
			words := spec.Words(lang)
			if shortHour.MatchString(words) {
				t.Errorf("line %d: the hour of %q has one figure, and others have two", r.line, words)
			}
			if again, rest, err := Parse(words, r.now); err != nil || again != spec || rest != "" {
				t.Errorf("line %d: %s in words is %s, which is read as %s, rest %q, %v", r.line, spec, words, again, rest, err)
			}
		}
	}
}

// Each rule of rules.tsv matches its first example, and not its second.
func TestRuleExamples(t *testing.T) {
	t.Parallel()
	rulestest.Examples(t, ruleFile, func(r rules.Rule, example string) bool {
		return expression(r.List).MatchString(newParser(example, time.Time{}).text)
	})
}
