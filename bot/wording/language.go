package wording

import (
	"cmp"
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"ebb/sessions"
	"ebb/sessions/rules"
)

// Languages chooses the language of fixed words: zh or en.
type Languages struct {
	Preset   string                               // for texts without letters
	Assigned func(sessions.ConversationID) string // configured language of a conversation, or ""
}

// Spoken is the language of words.
type Spoken struct {
	Lang  string // zh, en, or empty for words that show none
	Clear bool   // see [Judge]
}

// SpokenIn judges a text.
func SpokenIn(text string) Spoken {
	lang, clear := Judge(text)
	if lang == "" && strings.ContainsFunc(text, isLatin) {
		lang = "en"
	}
	return Spoken{lang, clear}
}

// Choose returns the conversation's configured language, or that of the sender's words.
func (l Languages) Choose(id sessions.ConversationID, words Spoken) string {
	return cmp.Or(l.Assigned(id), words.Lang, l.Preset)
}

// OfText is [Languages.Choose] for a text, as a rule the sender's.
func (l Languages) OfText(id sessions.ConversationID, text string) string {
	return l.Choose(id, SpokenIn(text))
}

// WordsOfCommand removes names of people from a command, because they may be in any language.
func WordsOfCommand(text string) string { return mentionRE.ReplaceAllString(text, " ") }

var mentionRE = regexp.MustCompile(`[@＠]\S+`)

// LanguageOf returns the language of a text, en for one with Latin letters alone, else the configured one.
func LanguageOf(text, configured string) string {
	return cmp.Or(SpokenIn(text).Lang, configured)
}

//go:embed rules.tsv
var ruleLines string

var (
	ruleFile = rules.Read(ruleLines)

	foreign = ruleFile.Regexp("foreign")
	name    = ruleFile.Regexp("name")
	subject = ruleFile.Regexp("subject")
	chinese = ruleFile.Regexp("chinese")
	english = ruleFile.Regexp("english")

	fenced = regexp.MustCompile("(?s)(?:```|~~~).*?(?:```|~~~|$)")
	// mayBeForeign saves most texts the search for parts that are in no language.
	mayBeForeign = regexp.MustCompile("[`@＠>\\[/\\\\_:=(){}<;#&|+*^~0-9]|\\.[A-Za-z]|[A-Z][A-Z]|[a-z][A-Z]|\\s-[a-zA-Z-]")
	word         = regexp.MustCompile(`\p{Latin}{2,}`)
	hanRun       = regexp.MustCompile(`\p{Han}+`)
)

// A text without a typical word is English from this number of words on. One is Japanese with a kana for each few Chinese characters. A
// text in capitals is English with this number of Latin letters for each Chinese one. The middle of a long text is not judged.
const (
	plainWords  = 5
	kanaShare   = 5
	shoutedOver = 4
	maxJudged   = 500 // bytes, of the head and of the tail
)

// Judge returns zh for a text in Chinese, and en for one in a language of Latin letters. It returns nothing for code, addresses, names,
// emoji and words of other scripts. A word or two in Latin letters are not clear: people type them in any language.
//
// A text in both is Chinese where a line of it begins with Chinese words that are no name: a request about a pasted text is such a line.
// Within an English sentence they are a name or a quoted term.
func Judge(text string) (lang string, clear bool) {
	text = ends(text)
	s := scriptsOf(text)
	if isShouted(text, s) {
		text = strings.ToLower(text)
	}
	if mayBeForeign.MatchString(text) {
		text = foreign().ReplaceAllString(fenced.ReplaceAllString(text, " "), " ")
		s = scriptsOf(text)
	}
	switch {
	case s.kana > 0 && s.kana*kanaShare >= s.han, s.other > s.han+s.latin:
		return "", false
	case s.han > 0 && (s.latin == 0 || !english().MatchString(text) || chinese().MatchString(withoutNames(text))):
		return "zh", true
	}
	words := len(word.FindAllString(text, plainWords))
	if s.latin == 0 || words == 0 {
		return "", false
	}
	return "en", words == plainWords || english().MatchString(text)
}

// ends returns the head and the tail of a long text without its code. The tail begins with a whole line, if it has one.
func ends(text string) string {
	if len(text) <= 2*maxJudged {
		return text
	}
	if text = fenced.ReplaceAllString(text, " "); len(text) <= 2*maxJudged {
		return text
	}
	head, tail := text[:maxJudged], text[len(text)-maxJudged:]
	if i := strings.IndexByte(strings.TrimRight(tail, "\n"), '\n'); i >= 0 {
		tail = tail[i:]
	}
	return strings.ToValidUTF8(head, "") + " " + strings.ToValidUTF8(tail, "")
}

// isShouted reports whether a text of several words, one of them English, is in capitals. Others in capitals are abbreviations.
func isShouted(text string, s scripts) bool {
	return s.latin > shoutedOver*s.han && len(word.FindAllString(text, 2)) == 2 && text == strings.ToUpper(text) && english().MatchString(text)
}

// withoutNames removes names of people from a text with English words, and the Chinese subject of an English sentence.
func withoutNames(text string) string {
	text = subject().ReplaceAllString(text, " ")
	return hanRun.ReplaceAllStringFunc(text, func(run string) string {
		if name().MatchString(run) {
			return " "
		}
		return run
	})
}

// scripts are numbers of letters.
type scripts struct{ han, kana, latin, other int }

func scriptsOf(text string) (s scripts) {
	for _, r := range text {
		switch {
		case r >= 0x4e00 && r <= 0x9fff: // most of them
			s.han++
		case isLatin(r):
			s.latin++
		case !unicode.IsLetter(r):
		case unicode.Is(unicode.Han, r):
			s.han++
		case unicode.In(r, unicode.Hiragana, unicode.Katakana):
			s.kana++
		default:
			s.other++
		}
	}
	return s
}

func isLatin(r rune) bool { return unicode.Is(unicode.Latin, r) }

// Moment formats a time in its own zone, with seconds if there are any.
func Moment(t time.Time) string {
	if t.Second() != 0 {
		return t.Format("2006-01-02 15:04:05")
	}
	return t.Format("2006-01-02 15:04")
}

// Thousands formats 64000 as 64,000.
func Thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// leastCost is the smallest amount with a digit.
const leastCost = 0.0001

// Cost formats an amount with four digits behind the point, as in 0.0123 CNY or ¥0.0123. An empty currency leaves the figure alone.
func Cost(amount float64, currency string) string {
	if amount > 0 && amount < leastCost {
		return "< " + withCurrency(fmt.Sprint(leastCost), currency)
	}
	return withCurrency(fmt.Sprintf("%.4f", amount), currency)
}

// Price formats a configured price as it is written.
func Price(amount float64, currency string) string { return withCurrency(fmt.Sprint(amount), currency) }

// withCurrency puts a sign before the figure, and a code or a word behind it.
func withCurrency(figure, currency string) string {
	if r, _ := utf8.DecodeRuneInString(currency); unicode.Is(unicode.Sc, r) {
		return currency + figure
	}
	return strings.TrimSpace(figure + " " + currency)
}
