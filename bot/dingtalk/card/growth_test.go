package card

import (
	"strings"
	"testing"

	"ebb/bot/chat"
	"ebb/sessions/sessionstest"
)

// hostile are beginnings of syntax, over and over.
var hostile = map[string]string{
	"backticks": "`", "runs of backticks": "` `` ``` ", "fences": "```\n", "nested quotes": "> ", "quotes": "> a\n> > b\n", "brackets": "](",
	"labels": "[[![", "stars": "*a **b ", "less": "<b <http://", "entities": "&lt", "rows": "| a | b |\n", "pipes": "|", "lists": "- a\n  - b\n    - c\n",
	"nested items": "- ", "indented": "    a\n", "dashes": "-\n", "one line": "字",
}

// Parsing, frames and pieces of a text take time in proportion to it, whatever it is made of.
func TestGrowth(t *testing.T) {
	for name, f := range map[string]func(string){
		"Final": func(s string) { Final(s) },
		"Frame": func(s string) { Frame(s) },
		"Split": func(s string) { Split(s, Limit) },
	} {
		t.Run(name, func(t *testing.T) {
			sessionstest.CheckGrowthOf(t, name, sessionstest.LongMessage, hostile, f)
		})
	}
}

// A table of 10,000 rows, 100,000 backticks, a line of 1 MB and quotes in quotes come in sound pieces.
func TestPiecesOfHostileTexts(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a table":       "| 甲 | 乙 |\n|---|---|\n" + strings.Repeat("| 1 | `2` |\n", 10_000),
		"backticks":     strings.Repeat("`", 100_000),
		"a line":        strings.Repeat("一行 word ", 1<<20/13),
		"nested quotes": strings.Repeat(strings.Repeat("> ", 200)+"引用\n", 200),
		"a code block":  "```go\n" + strings.Repeat("x := 1\n", 20_000),
		"indented code": "说明：\n\n" + strings.Repeat("    ```\n", 2001),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkPieces(t, text, Limit)
			checkSound(t, Frame(text))
		})
	}
}

// Indented code stays code in each piece, and is no list that goes to the margin.
func TestPiecesOfIndentedCode(t *testing.T) {
	t.Parallel()
	for i, p := range Split("说明：\n\n"+strings.Repeat("    # no heading\n", 400), minLimit) {
		if i > 0 && !strings.HasPrefix(p, "    # no heading\n") {
			t.Errorf("piece %d begins with %.40q", i, p)
		}
	}
}

// Once an answer is longer than a card, its frame stays, and no further update reads the answer again.
func TestFramesOfALongAnswerAreNotMadeAgain(t *testing.T) {
	l := &live{cards: NewCards(Config{}), shown: chat.Shown{Lang: "zh"}, news: make(chan struct{}, 1)}
	line := strings.Repeat("这一行很长。", 40) + "\n"
	read, last := 0, ""
	for range 5000 {
		l.Text(line, false)
		if l.full == "" {
			read += len(l.text)
		}
		last = l.frame()
	}
	if most := 20 * Limit * len("字"); read > most {
		t.Errorf("%d bytes were parsed for an answer of %d, want at most %d", read, len(l.text), most)
	}
	if n := testing.AllocsPerRun(100, func() { l.frame() }); n > 0 {
		t.Errorf("a frame of a long answer takes %v allocations", n)
	}
	l.Text("又来", true)
	if f := l.frame(); f != "又来" || last == f {
		t.Errorf("after an undo the frame is %q", f)
	}
}
