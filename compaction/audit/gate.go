package audit

import (
	"compress/zlib"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"ebb/sessions"
	"ebb/sessions/llm"
	"ebb/sessions/reasoning"
	"ebb/sessions/written"
)

// ErrTalk is the fault of a reply that goes on with the conversation instead of summarizing it.
var ErrTalk = errors.New("the model went on with the conversation")

// ReplyContext has the other side of a check.
type ReplyContext struct {
	Source, Got int // tokens of the source with the previous summary, and of the reply
	Events      []sessions.Event
	Previous    string // summary to continue
	Request     string // instructions; their headings are the required sections
	Language    string // zh or en; empty accepts any
}

var refusals = []string{
	"i cannot", "i can't", "i can not", "i'm sorry", "i am sorry", "i'm unable", "i am unable", "as an ai", "sorry,", "error generating", "error:",
	"unable to generate", "抱歉", "对不起", "很抱歉", "非常抱歉", "作为一个", "作为ai", "作为 ai", "我无法", "我不能", "无法生成", "无法总结", "生成摘要失败",
}

// CheckReply is the gate of every summary: nil, or the reason why a reply is none.
func CheckReply(r llm.Response, c ReplyContext) error {
	text := reasoning.Strip(r.Text)
	low := strings.ToLower(text)
	switch {
	case len(r.ToolCalls) > 0:
		return errors.New("the model called a tool instead of answering")
	case text == "":
		return errors.New("the summary is empty")
	case r.Finish != llm.FinishStop: // or it was filtered
		return errors.New("the summary was cut off")
	case c.Source > LargeSource && c.Got < minLength(c.Source):
		return fmt.Errorf("%d tokens are too few for a source of %d", c.Got, c.Source)
	case c.Source > LargeSource && c.Got > 2*c.Source: // a shorter one can be shortened
		return fmt.Errorf("%d tokens are too many for a source of %d", c.Got, c.Source)
	case isErrorPage(text):
		return errors.New("the summary is an error page")
	case strings.HasPrefix(low, "<<<") || strings.Count("\n"+text, "\n{\"n\":") > 2 || repeatsRequest(text, c.Request):
		return errors.New("the summary repeats its request")
	case len(text) > 1000 && len(text) > maxPacking*packedSize(text):
		return errors.New("the summary is one text over and over")
	}
	for _, p := range refusals {
		if strings.HasPrefix(strings.TrimLeft(low, "#*> \"“\n"), p) && sectionCoverage(text, c.Request) < minCoverage {
			return fmt.Errorf("the summary is a refusal (%q)", p)
		}
	}
	if (!hasSections(c.Request) || sectionCoverage(text, c.Request) < minCoverage) && written.IsTalk(text) {
		return ErrTalk
	}
	if n := mostRepeated(low); n > maxRepeats {
		return fmt.Errorf("one phrase stands %d times in the summary", n)
	}
	return c.compareSource(text)
}

// LargeSource is the source size in tokens above which lengths are compared: short turns hardly get shorter.
const LargeSource = 1000

// minLength is 1.5 % of the source, between 20 and 50 tokens.
func minLength(source int) int { return min(50, max(20, source*15/1000)) }

// A sound summary repeats a phrase of six words now and then, a broken one endlessly.
const (
	phraseWords = 6
	maxRepeats  = 10
)

// maxPacking is the maximum compression ratio. Prose packs to about a half, lists of identifiers to a fifth.
const maxPacking = 8

func packedSize(text string) int {
	var n byteCounter
	z := zlib.NewWriter(&n)
	_, _ = z.Write([]byte(text)) // counting never fails
	_ = z.Close()
	return int(n)
}

type byteCounter int

func (c *byteCounter) Write(p []byte) (int, error) { *c += byteCounter(len(p)); return len(p), nil }

// mostRepeated counts the most frequent phrase, without words with digits, since lists of keys repeat them.
func mostRepeated(text string) int {
	words := splitWords(text)
	seen, most := map[string]int{}, 0
	for i := 0; i+phraseWords <= len(words); i++ {
		p := strings.Join(words[i:i+phraseWords], " ")
		if seen[p]++; seen[p] > most {
			most = seen[p]
		}
	}
	return most
}

// splitWords also splits Chinese into overlapping pairs of characters, and drops words with digits.
func splitWords(text string) []string {
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
		if len(out) == 0 || out[len(out)-1] != f { // units repeat between numbers
			out = append(out, f)
		}
	}
	return out
}
