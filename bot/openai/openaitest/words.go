package openaitest

import (
	"regexp"
	"strings"
	"unicode"
)

// grams are words of Latin letters and digits, and pairs of Chinese characters.
func grams(text string) map[string]bool {
	out := map[string]bool{}
	var word []rune
	var prev rune
	end := func() {
		if len(word) > 0 {
			out[string(word)] = true
		}
		word = word[:0]
	}
	for _, r := range strings.ToLower(text) {
		switch {
		case unicode.Is(unicode.Han, r):
			end()
			if unicode.Is(unicode.Han, prev) {
				out[string([]rune{prev, r})] = true
			}
		case unicode.IsLetter(r) || unicode.IsDigit(r) || (r == '-' && len(word) > 0):
			word = append(word, r)
		default:
			end()
		}
		prev = r
	}
	end()
	return out
}

// Answers lack these words of questions.
var asking = regexp.MustCompile(`(?i)请问|还记得|记得|知道|什么时候|什么|谁|哪天|哪个|哪里|哪|几点|几号|多少|怎么|如何|是不是|有没有|何时|吗|呢|是|的|了|我们|咱们|我|你|在|请|\b(who|what|when|where|which|how|is|are|the|a|an|of|for|our|do|does|did|you|remember|to|in|on)\b`)

func topic(question string) map[string]bool { return grams(asking.ReplaceAllString(question, " ")) }

// best returns the saying most similar to a question, the newest of equals, if one is similar enough.
func best(question string, in []said) (said, bool) {
	want := topic(question)
	var found said
	most := 0
	for _, s := range in {
		if strings.HasPrefix(s.text, "#") || isQuestion(s.text) && statements(s.text) == "" {
			continue
		}
		have, n := grams(s.fact()), 0
		for g := range want {
			if have[g] {
				n += 2
			}
		}
		if n > 0 && strings.Count(s.text, "、") > 2 {
			n-- // a sentence has precedence over a list of identifiers
		}
		if n >= most && n > 0 {
			found, most = s, n
		}
	}
	return found, most*3 >= len(want)*2 && (most >= 3 || (most > 0 && len(want) == 1))
}
