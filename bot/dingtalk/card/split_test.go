package card

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"ebb/bot/dingtalk/markdown"
)

var numbered = regexp.MustCompile(`(?:苹果|word|会议|é)[0-9]+`)

// repeated are the lines that a piece may have again: heads of tables and the beginnings of code blocks.
func repeated(text string) map[string]bool {
	out := map[string]bool{}
	for _, l := range markdown.Parse(text) {
		if l.Kind == markdown.TableHead || l.Kind == markdown.FenceOpen {
			for _, w := range numbered.FindAllString(l.Text, -1) {
				out[w] = true
			}
		}
	}
	return out
}

// checkPieces states the laws of Split: each piece is sound and short enough, and each word is there once and in order,
// but for words of repeated lines.
func checkPieces(t fataler, text string, limit int) []string {
	t.Helper()
	pieces := Split(text, limit)
	again := repeated(text)
	var got, want []string
	for i, p := range pieces {
		if n := utf8.RuneCountInString(p); n > limit {
			t.Fatalf("piece %d has %d characters, more than %d", i, n, limit)
		}
		final := Final(p)
		checkSound(t, final)
		checkFences(t, final)
		body, err := json.Marshal(final)
		if err != nil || limit <= Limit && len(body) >= 20_000 {
			t.Fatalf("piece %d has %d bytes: %v", i, len(body), err)
		}
		for _, w := range numbered.FindAllString(p, -1) {
			if !again[w] {
				got = append(got, w)
			}
		}
	}
	for _, w := range numbered.FindAllString(text, -1) {
		if !again[w] {
			want = append(want, w)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("the pieces have the words\n%s\nnot\n%s", got, want)
	}
	return pieces
}

// minLimit is the least limit of [Split].
const minLimit = 1000

// TestPiecesHaveEveryWordOnce checks the pieces of long texts, and that they stay while a text grows: a card that is
// finished must not change.
func TestPiecesHaveEveryWordOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		var b strings.Builder
		d := drawing{T: r}
		for range rapid.IntRange(5, 40).Draw(r, "blocks") {
			b.WriteString(d.block(0) + "\n")
		}
		text := b.String()
		limit := rapid.IntRange(minLimit, Limit).Draw(r, "limit")
		pieces := checkPieces(r, text, limit)
		runes := []rune(text)
		prefix := string(runes[:rapid.IntRange(0, len(runes)).Draw(r, "prefix")])
		for i, p := range Split(prefix, limit) {
			if i < len(Split(prefix, limit))-1 && p != pieces[i] {
				r.Fatalf("piece %d changes from\n%q\nto\n%q", i, p, pieces[i])
			}
		}
	})
}

func FuzzSplit(f *testing.F) {
	f.Add("- 甲\n    - 乙\n      ```go\n      x\n      ```\n", 1000, 300)
	f.Add("    ```\n", 938, 300)
	f.Add("\n  * \n    ```0", 957, 212)
	f.Add("```0\n    ``` ", 1048, 259)
	f.Fuzz(func(t *testing.T, text string, limit, times int) {
		text = strings.Repeat(text, 1+times&0xff)
		if len(text) > 1<<16 {
			return
		}
		checkPieces(t, text, minLimit+limit&0x7ff)
	})
}

// A table of forty rows: each piece has the head.
func TestPiecesRepeatTheHeadOfATable(t *testing.T) {
	t.Parallel()
	head := "| 姓名 | 说明 |\n| --- | --- |\n"
	text := "名单：\n\n" + head
	for i := range 40 {
		text += fmt.Sprintf("| 会议%d | %s |\n", i, strings.Repeat("说明", 40))
	}
	pieces := checkPieces(t, text, 1000)
	for i, p := range pieces {
		if i > 0 && !strings.HasPrefix(p, head+"| 会议") || len(pieces) < 4 {
			t.Errorf("piece %d of %d begins with %.60q", i, len(pieces), p)
		}
	}
}

// A list is cut between items; a nested rest goes to the margin. A code block in an item goes on as one.
func TestPiecesOfLists(t *testing.T) {
	t.Parallel()
	text := "- 会议1\n"
	for i := range 60 {
		text += fmt.Sprintf("    - 苹果%d %s\n      续\n", i, strings.Repeat("字", 30))
	}
	for i, p := range checkPieces(t, text, 1000) {
		if i > 0 && !strings.HasPrefix(p, "- 苹果") {
			t.Errorf("piece %d begins with %.40q", i, p)
		}
		if !strings.HasSuffix(p, "续") {
			t.Errorf("piece %d is cut in an item: %q", i, p)
		}
	}
	text = "1. 会议1\n   ```go\n" + strings.Repeat("   x := 1\n", 300) + "   ```\n"
	for i, p := range checkPieces(t, text, 1000) {
		if i > 0 && !strings.HasPrefix(p, "```go\nx := 1\n") {
			t.Errorf("piece %d begins with %.40q", i, p)
		}
	}
}

// BenchmarkFrames shows the time of one frame of 64 KB. It grows with the text alone, whatever the text is.
func BenchmarkFrames(b *testing.B) {
	block := "## 标题\n\n说明 **重点** 和 `代码`，见[文档](https://a.cn/b)。\n第二行 <b>\n\n- 一\n- 二\n  续\n\n| 甲 | 乙 |\n|---|---|\n| 1 | 2 |\n\n```go\nx := 1\n```\n\n"
	for name, unit := range map[string]string{"Markdown": block, "words": "文字", "backticks": "` `` ", "brackets": "](", "labels": "[[![", "stars": "*a **b ", "quotes": "> ", "less": "<b <http://", "pipes": "| a |\n", "amps": "&lt"} {
		text := strings.Repeat(unit, 64<<10/len(unit)+1)[:64<<10]
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Frame(text)
			}
		})
	}
}
