package markdown

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// bytes measures a text in bytes.
func bytes(_ rune, n int) int { return n }

// checkSplit states the law of split: nothing is lost, nothing is too long, no character is cut.
func checkSplit(t interface{ Fatalf(string, ...any) }, text string, limit int) []Piece {
	pieces := Split(text, Budget{limit, bytes}, Budget{limit, bytes})
	var all strings.Builder
	for i, p := range pieces {
		all.WriteString(p.Body)
		if n := len(p.Text()); n > limit {
			t.Fatalf("piece %d of %q has %d bytes, more than %d", i, text, n, limit)
		}
		if utf8.ValidString(text) && !utf8.ValidString(p.Text()) {
			t.Fatalf("piece %d is cut inside a character: %q", i, p.Body)
		}
		if p.Body == "" {
			t.Fatalf("piece %d is empty", i)
		}
	}
	if all.String() != text {
		t.Fatalf("the pieces are not the text: %q", all.String())
	}
	return pieces
}

func TestSplitKeepsEverything(t *testing.T) {
	t.Parallel()
	part := rapid.SampledFrom([]string{
		"\n", "\n\n", "```go\n", "```\n", "~~~\n", "   ```\n", "    ```\n", "words and more words", strings.Repeat("长", 400),
		strings.Repeat("x", 900), "\"\\\t", "😀", "# title\n", "```" + strings.Repeat("i", 80) + "\n", "\x00\x01", "\u2028",
		strings.Repeat("`", 40) + "\n", "line\n", " ", "\xff",
	})
	rapid.Check(t, func(r *rapid.T) {
		text := strings.Join(rapid.SliceOfN(part, 0, 60).Draw(r, "parts"), "")
		checkSplit(r, text, rapid.IntRange(1000, 3000).Draw(r, "limit"))
	})
}

func FuzzSplit(f *testing.F) {
	f.Add("```go\nfunc main() {}\n```\n\nwords", 1000)
	f.Add(strings.Repeat("中文 words\n", 300), 1200)
	f.Add(strings.Repeat("~", 5000), 1000)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		checkSplit(t, text, 1000+(limit&0xffff))
	})
}

// Each piece on its own must be sound Markdown: code blocks are closed in it, and go on in the next with their language.
func TestSplitClosesAndReopensCodeBlocks(t *testing.T) {
	t.Parallel()
	code := "intro\n\n````python title\n" + strings.Repeat("print('```')\n", 300) + "````\n\nafter"
	pieces := checkSplit(t, code, 1000)
	if len(pieces) < 4 {
		t.Fatalf("%d pieces", len(pieces))
	}
	for i, p := range pieces {
		lines := Parse(p.Text())
		if lines[len(lines)-1].Fence.Mark != "" {
			t.Errorf("piece %d leaves a code block open: %q", i, p.Text())
		}
		if i > 0 && i < len(pieces)-1 && !strings.HasPrefix(p.Text(), "````python title\nprint") {
			t.Errorf("piece %d does not go on with the code block: %q", i, p.Text())
		}
	}
}

func TestSplitPrefersParagraphs(t *testing.T) {
	t.Parallel()
	paragraph := strings.Repeat("A sentence of a paragraph.\n", 14)
	for i, p := range checkSplit(t, strings.Repeat(paragraph+"\n", 9), 1000) {
		if !strings.HasSuffix(p.Body, "\n\n") {
			t.Errorf("piece %d does not end with a paragraph: %q", i, p.Body[len(p.Body)-30:])
		}
	}
	for i, p := range checkSplit(t, strings.Repeat("An item of a long list.\n", 200), 1000) {
		if !strings.HasSuffix(p.Body, "list.\n") {
			t.Errorf("piece %d does not end with a line: %q", i, p.Body[len(p.Body)-30:])
		}
	}
	pieces := checkSplit(t, strings.Repeat("words ", 1000), 1000)
	for i, p := range pieces {
		if !strings.HasSuffix(p.Body, " ") {
			t.Errorf("piece %d ends within a word", i)
		}
	}
	if len(pieces) > 8 {
		t.Errorf("6,000 bytes take %d pieces of 1,000", len(pieces))
	}
}

// A part never ends with a heading whose text begins the next one.
func TestSplitKeepsHeadingsWithTheirText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		var text strings.Builder
		for i := range rapid.IntRange(3, 60).Draw(r, "sections") {
			fmt.Fprintf(&text, "%s 第 %d 节%s%s\n\n", strings.Repeat("#", 1+i%6), i, rapid.SampledFrom([]string{"\n", "\n\n"}).Draw(r, "gap"),
				strings.Repeat(rapid.SampledFrom([]string{"一句话。", "a line\n", "words "}).Draw(r, "words"), rapid.IntRange(1, 120).Draw(r, "length")))
		}
		pieces := checkSplit(r, text.String(), rapid.IntRange(1000, 3000).Draw(r, "limit"))
		for i, p := range pieces[:len(pieces)-1] {
			lines := strings.Split(strings.TrimSpace(p.Body), "\n")
			if last := lines[len(lines)-1]; strings.HasPrefix(last, "#") && strings.HasSuffix(p.Body, "\n") {
				r.Fatalf("piece %d ends with the heading %q", i, last)
			}
		}
	})
}
