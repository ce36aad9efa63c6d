package wording

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ebb/sessions"
)

// argumentRE matches the place of an argument, with its number and its verb.
var argumentRE = regexp.MustCompile(`%(?:\[(\d+)\])?[-+ #0-9.]*([a-zA-Z])`)

// argumentsOf lists the verb of each argument of a text.
func argumentsOf(text string) map[int]string {
	verbs, next := map[int]string{}, 1
	for _, m := range argumentRE.FindAllStringSubmatch(strings.ReplaceAll(text, "%%", ""), -1) {
		if n, err := strconv.Atoi(m[1]); err == nil {
			next = n
		}
		verbs[next] = m[2]
		next++
	}
	return verbs
}

// Both texts of a phrase take the same arguments in the same order: a caller knows one list. A phrase without arguments has no percent
// sign that would have to be written twice, and a mark stands behind an argument.
func TestPhrasesTakeTheSameArguments(t *testing.T) {
	t.Parallel()
	for p, text := range phrases {
		zh, en := argumentsOf(text[0]), argumentsOf(text[1])
		if len(zh) != len(en) {
			t.Errorf("phrase %d takes %v in Chinese and %v in English", p, zh, en)
		}
		var args []any
		for n := 1; n <= len(zh); n++ {
			if zh[n] != en[n] || zh[n] == "" {
				t.Errorf("argument %d of phrase %d is %q in Chinese and %q in English", n, p, zh[n], en[n])
			}
			if args = append(args, any("word")); zh[n] == "d" {
				args[n-1] = 2
			}
		}
		for _, lang := range []string{"zh", "en"} {
			if said := Say(p, lang, args...); strings.Contains(said, "%!") || strings.ContainsAny(said, "{}") || len(args) == 0 && strings.Contains(said, "%%") {
				t.Errorf("phrase %d with %v is %q", p, args, said)
			}
		}
	}
}

// A number of any size has its figures, in groups of three from the end.
func TestThousands(t *testing.T) {
	t.Parallel()
	groups := regexp.MustCompile(`^-?\d{1,3}(,\d{3})*$`)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int().Draw(t, "n")
		if got := Thousands(n); !groups.MatchString(got) || strings.ReplaceAll(got, ",", "") != strconv.Itoa(n) {
			t.Fatalf("%d is %q", n, got)
		}
	})
}

// Literal words stay literal, keep their lines, and have no mark of Markdown outside of an address.
func TestLiteralHasNoMarks(t *testing.T) {
	t.Parallel()
	part := rapid.SampledFrom([]string{
		"*", "_", "`", "[a]", "(b)", "<b>", "#", "|", "~", "\\", "@all", "\n", "\r\n", "\u2028", "---", "===", " ", "https://a.example/x_y#z~1", "http://", "words", "中文", "\xff",
	})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(part, 0, 20).Draw(t, "parts"), "")
		got := Literal(text)
		if again := Literal(got); again != got {
			t.Fatalf("%q becomes %q, and then %q", text, got, again)
		}
		if i := strings.IndexAny(bareURL.ReplaceAllString(got, ""), "[]<>`*_~|#\\@\r"); i >= 0 {
			t.Fatalf("%q becomes %q", text, got)
		}
		if lines := strings.Count(newlines.Replace(text), "\n"); strings.Count(got, "\n") != lines {
			t.Fatalf("%q of %d lines becomes %q", text, lines+1, got)
		}
	})
}

// Each further line of a person's words is a quote, whatever ends the line before it.
func TestAttributedLinesAreQuotes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"pay", "⏰ Boss: pay", "# now", "- a", ""}), 1, 6).Draw(t, "lines")
		text := strings.Join(words, rapid.SampledFrom([]string{"\n", "\r", "\r\n", "\v", "\f", "\u0085", "\u2028", "\u2029"}).Draw(t, "end"))
		lines := strings.Split(Attributed("Ann", text, "en"), "\n")
		if len(lines) != len(words) || !strings.HasPrefix(lines[0], "Ann: ") || slices.ContainsFunc(lines[1:], func(s string) bool { return !strings.HasPrefix(s, "> ") }) {
			t.Fatalf("%q becomes %q", text, lines)
		}
	})
}

// A conversation's configured language comes first, then that of the words, then the preset one.
func TestLanguagesAreChosenInOrder(t *testing.T) {
	t.Parallel()
	l := Languages{Preset: "zh", Assigned: func(id sessions.ConversationID) string {
		return map[sessions.ConversationID]string{"english": "en", "chinese": "zh"}[id]
	}}
	for _, c := range []struct {
		id         sessions.ConversationID
		text, want string
	}{
		{"english", "明天几点开会", "en"}, {"chinese", "when is the meeting", "zh"}, {"other", "when is the meeting", "en"}, {"other", "明天几点开会", "zh"},
		{"other", "👍", "zh"}, {"other", "", "zh"}, {"other", "ok", "en"}, {"english", "", "en"},
	} {
		if got := l.OfText(c.id, c.text); got != c.want {
			t.Errorf("%q in %s is answered in %s, want %s", c.text, c.id, got, c.want)
		}
	}
	if got := (Languages{Preset: "en", Assigned: func(sessions.ConversationID) string { return "" }}).OfText("any", "12"); got != "en" {
		t.Errorf("without configured conversations a number is answered in %s", got)
	}
	if got := WordsOfCommand("/forget @张三 ＠Bob now"); got != "/forget     now" {
		t.Errorf("without names the command is %q", got)
	}
}
