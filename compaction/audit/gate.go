package audit

import (
	"compress/zlib"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"ebb/sessions"
)

// Reply is a model's answer to a summary request.
type Reply struct {
	Text  string
	Stop  bool // it ended by itself: not cut off, not filtered
	Calls bool // it called tools, which were not offered
}

var thinkRE = regexp.MustCompile(`(?s)<think(?:ing)?>.*?(?:</think(?:ing)?>|\z)`)

// CleanSummary strips what a model thought aloud and the blanks around its answer.
func StripReasoning(text string) string {
	return strings.TrimSpace(thinkRE.ReplaceAllString(text, ""))
}

// Checked is what a summary is compared with.
type ReplyContext struct {
	Source, Got int              // tokens of what it tells, the summary before it included, and of itself
	Events      []sessions.Event // what it tells
	Previous    string           // the summary that it continues
	Request     string           // the instructions that the model was given; its headings are the sections to write
	Language    string           // zh or en; empty: any will do
}

// refusals begin answers that are about the request instead of the conversation.
var refusals = []string{
	"i cannot", "i can't", "i can not", "i'm sorry", "i am sorry", "i'm unable", "i am unable", "as an ai", "sorry,", "error generating", "error:",
	"unable to generate", "抱歉", "对不起", "很抱歉", "非常抱歉", "作为一个", "作为ai", "作为 ai", "我无法", "我不能", "无法生成", "无法总结", "生成摘要失败",
}

// CheckSummary is the gate that every summary passes before it may take the place of what was said: nil, or why it is
// not a summary. It looks for what models do instead of telling; whether a summary is a good one is the audit's to say.
func CheckReply(r Reply, c ReplyContext) error {
	text := StripReasoning(r.Text)
	low := strings.ToLower(text)
	switch {
	case r.Calls:
		return errors.New("the model called a tool instead of answering")
	case text == "":
		return errors.New("the summary is empty")
	case !r.Stop:
		return errors.New("the summary was cut off")
	case c.Source > LargeSource && c.Got < shortest(c.Source):
		return fmt.Errorf("%d tokens are too few for a source of %d", c.Got, c.Source)
	case c.Source > LargeSource && c.Got > 2*c.Source: // a shorter one is wordy, and can be shortened
		return fmt.Errorf("%d tokens are too many for a source of %d", c.Got, c.Source)
	case isErrorPage(text):
		return errors.New("the summary is an error page")
	case strings.HasPrefix(low, "<<<") || strings.Count("\n"+text, "\n{\"n\":") > 2 || echoes(text, c.Request):
		return errors.New("the summary repeats its request")
	case len(text) > 1000 && len(text) > maxPacking*packed(text):
		return errors.New("the summary is one text over and over")
	}
	for _, p := range refusals {
		if strings.HasPrefix(strings.TrimLeft(low, "#*> \"“\n"), p) && coverage(text, c.Request) < minCoverage {
			return fmt.Errorf("the summary is a refusal (%q)", p)
		}
	}
	if n := mostRepeated(low); n > maxRepeats {
		return fmt.Errorf("one phrase stands %d times in the summary", n)
	}
	return c.compare(text)
}

// largeSource is from how many tokens on the length of a summary says something: three short turns can't be told in much
// less than they are.
const LargeSource = 1000

// shortest is the least that a summary may take: 1.5 % of its source, as far as that tells an answer from a brush-off.
func shortest(source int) int { return min(50, max(20, source*15/1000)) }

// A healthy summary repeats a phrase of six words now and then, and a broken one without end.
const (
	phraseWords = 6
	maxRepeats  = 10
)

// maxPacking is how far a text may be compressible. Prose packs to about a half, lists of identifiers to a fifth.
const maxPacking = 8

// packed is the compressed size of a text, in bytes.
func packed(text string) int {
	var n counting
	z := zlib.NewWriter(&n)
	_, _ = z.Write([]byte(text)) // counting takes all
	_ = z.Close()
	return int(n)
}

type counting int

func (c *counting) Write(p []byte) (int, error) { *c += counting(len(p)); return len(p), nil }

// mostRepeated is how often the most frequent phrase of six words stands in a text. Identifiers, which a list of keys
// rightly repeats the shape of, are not words here; Chinese is counted in pairs of characters.
func mostRepeated(text string) int {
	words := words(text)
	seen, most := map[string]int{}, 0
	for i := 0; i+phraseWords <= len(words); i++ {
		p := strings.Join(words[i:i+phraseWords], " ")
		if seen[p]++; seen[p] > most {
			most = seen[p]
		}
	}
	return most
}

// words splits a text into words without digits, and Chinese into overlapping pairs of characters.
func words(text string) []string {
	var out []string
	for _, f := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) && r != '-' && r != '_' }) {
		if strings.ContainsFunc(f, unicode.IsNumber) {
			continue
		}
		if rs := []rune(f); unicode.Is(unicode.Han, rs[0]) {
			for i := 0; i+1 < len(rs); i++ {
				if pair := string(rs[i : i+2]); len(out) == 0 || out[len(out)-1] != pair {
					out = append(out, pair)
				}
			}
			continue
		}
		if len(out) == 0 || out[len(out)-1] != f { // units between numbers stand side by side here
			out = append(out, f)
		}
	}
	return out
}
