package card

import (
	"strings"

	"ebb/bot/dingtalk/markdown"
)

// Limit is the longest text of one card, in characters of Markdown. Cards are blank beyond about 3,000 Chinese
// characters, and DingTalk refuses 20,000 bytes. A character takes at most 6 bytes in a request: 16,800 bytes.
const Limit = 2800

// Split cuts a text into pieces for [Final] or [Frame], one card each, of at most limit characters. The limit is at
// least 1,000. As a text grows, all pieces but the last stay as they are.
func Split(text string, limit int) []string {
	one := ofCharacters(limit)
	return split(text, one, one)
}

// SplitOnto cuts a text into the piece of a card, as [Split] does, and messages for the rest.
func SplitOnto(text string, messages markdown.Budget) []string {
	return split(text, ofCharacters(Limit), messages)
}

func ofCharacters(limit int) markdown.Budget {
	return markdown.Budget{Limit: limit, Size: func(rune, int) int { return 1 }}
}

func split(text string, first, further markdown.Budget) []string {
	var out []string
	for i, p := range markdown.Split(clean(text), first, further) {
		s := strings.Trim(p.Text(), "\n")
		if i > 0 && p.First != markdown.Indented {
			s = outdent(s)
		}
		if strings.TrimSpace(s) != "" {
			out = append(out, s)
		}
	}
	return out
}

// A list that begins in its depth is moved to the margin, or it would show as code. A code block that only the end of
// its item would close stays in its depth.
func outdent(text string) string {
	depth := len(text) - len(strings.TrimLeft(text, " "))
	if depth == 0 {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		blanks := len(line) - len(strings.TrimLeft(line, " "))
		if blanks < depth && strings.TrimSpace(line) != "" {
			if moved := markdown.Parse(b.String()); moved[len(moved)-1].Fence.Mark != "" {
				return text
			}
			depth = 0
		}
		b.WriteString(line[min(blanks, depth):])
	}
	return b.String()
}
