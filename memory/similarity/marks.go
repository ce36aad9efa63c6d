package similarity

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"ebb/memory/text"
)

// Marks identify a text: numbers, addresses and codes, and phrases, the parts between punctuation. Both are long
// enough not to coincide by accident.
const (
	minIdentifier  = 5  // bytes
	MinPhrase      = 6  // characters of a phrase with Chinese in it
	minPhraseLatin = 16 // characters of another
	MinWhole       = 4  // characters of a text without marks, compared as a whole
)

// Dates and times of day belong to no person.
var everyday = regexp.MustCompile(`^(\d{4}[-/.]\d{1,2}([-/.]\d{1,2})?|\d{1,2}:\d{2}(:\d{2})?)$`)

// MarksOf adds the marks of a text to a set.
func MarksOf(said string, set map[string]bool) {
	said = text.Fold(said)
	for _, run := range strings.FieldsFunc(said, func(r rune) bool { return !isIdentifying(r) }) {
		run = strings.Trim(run, ".:@/_-+")
		if len(run) >= minIdentifier && strings.ContainsAny(run, "0123456789@") && !everyday.MatchString(run) {
			set[run] = true
		}
		for _, digits := range strings.FieldsFunc(run, func(r rune) bool { return !unicode.IsDigit(r) }) {
			if len(digits) >= minIdentifier {
				set[digits] = true
			}
		}
	}
	for _, phrase := range strings.FieldsFunc(said, func(r rune) bool {
		return unicode.IsPunct(r) || unicode.IsSymbol(r) || unicode.IsControl(r)
	}) {
		phrase = strings.Join(strings.Fields(phrase), " ")
		least := minPhraseLatin
		if strings.ContainsFunc(phrase, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
			least = MinPhrase
		}
		if utf8.RuneCountInString(phrase) >= least {
			set[phrase] = true
		}
	}
}

func isIdentifying(r rune) bool {
	return r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._@-/:+", r))
}

// Distinctive reports an identifier or the length of a sentence: many people may write shorter ones.
func Distinctive(text string) bool {
	marks := map[string]bool{}
	MarksOf(text, marks)
	return len(marks) > 0 || utf8.RuneCountInString(strings.TrimSpace(text)) >= leastSaid(text)
}

// A saying has at least this number of characters.
const (
	minSayingHan = 5 // with Chinese in it
	minSaying    = 10
)

func leastSaid(text string) int {
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
		return minSayingHan
	}
	return minSaying
}
