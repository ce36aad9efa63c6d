package card

import (
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// fataler is the part of *testing.T and *rapid.T that a check needs.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

var parser = goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough)).Parser()

// sight is what a person sees of a Markdown text, by a parser that is not ours.
type sight struct {
	prose, code, all strings.Builder
	html             []string // tags other than <br>
}

func look(md string) *sight {
	var s sight
	source := []byte(md)
	add := func(b *strings.Builder, v []byte) {
		b.Write(v)
		s.all.Write(v)
	}
	lines := func(n ast.Node) (out []byte) {
		for i := range n.Lines().Len() {
			line := n.Lines().At(i)
			out = append(out, line.Value(source)...)
		}
		return out
	}
	_ = ast.Walk(parser.Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Text:
			v := n.Segment.Value(source)
			if _, ok := n.Parent().(*ast.CodeSpan); ok {
				add(&s.code, v)
				break
			}
			add(&s.prose, util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(v))))
			if n.SoftLineBreak() || n.HardLineBreak() {
				add(&s.prose, []byte("\n"))
			}
		case *ast.String:
			add(&s.prose, n.Value)
		case *ast.AutoLink:
			add(&s.prose, n.Label(source))
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			add(&s.code, lines(n))
		case *ast.RawHTML:
			tag := ""
			for i := range n.Segments.Len() {
				seg := n.Segments.At(i)
				tag += string(seg.Value(source))
			}
			if tag != "<br>" {
				s.html = append(s.html, tag)
			}
			add(&s.prose, []byte("\n"))
		case *ast.HTMLBlock:
			s.html = append(s.html, string(lines(n)))
		}
		if n.Type() == ast.TypeBlock {
			s.all.WriteByte('\n')
			s.prose.WriteByte('\n')
		}
		return ast.WalkContinue, nil
	})
	return &s
}

// words are the letters and digits of a text, in their order.
func words(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s)
}

var (
	brTag    = regexp.MustCompile(`(?i)<br[ \t]*/?>`)
	fenceRow = regexp.MustCompile("^(?:[ >]|[-*+] |[0-9]+[.)] )*(`{3,}[^`]*|~{3,}.*)$")
)

// source are the words of a Markdown text with its addresses, without breaks and escapes.
func source(md string) string {
	return words(strings.ReplaceAll(brTag.ReplaceAllString(md, ""), "&lt;", ""))
}

// noFences are the lines of paragraphs and in code, by their numbers: a fence in them is text.
func noFences(md string) map[int]bool {
	out := map[int]bool{}
	_ = ast.Walk(parser.Parse(text.NewReader([]byte(md))), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n.Kind() {
		case ast.KindParagraph, ast.KindTextBlock, ast.KindCodeBlock, ast.KindFencedCodeBlock:
			for i := range n.Lines().Len() {
				out[strings.Count(md[:n.Lines().At(i).Start], "\n")] = true
			}
		}
		return ast.WalkContinue, nil
	})
	return out
}

// checkFences counts fences by themselves: each that opens is closed.
func checkFences(t fataler, md string) {
	t.Helper()
	open := ""
	if !strings.ContainsAny(md, "`~") {
		return
	}
	texts := noFences(md)
	for i, line := range strings.Split(md, "\n") {
		if texts[i] {
			continue
		}
		m := fenceRow.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		mark := m[1][:len(m[1])-len(strings.TrimLeft(m[1], m[1][:1]))]
		switch {
		case open == "":
			open = mark
		case mark[0] == open[0] && len(mark) >= len(open) && strings.TrimSpace(m[1]) == mark:
			open = ""
		}
	}
	if open != "" {
		t.Fatalf("a code block is left open in\n%s", md)
	}
}

// checkSound states what holds of every text that a card shows.
func checkSound(t fataler, md string) *sight {
	t.Helper()
	s := look(md)
	if len(s.html) > 0 {
		t.Fatalf("HTML %q is in\n%s", s.html, md)
	}
	if strings.HasSuffix(md, "\n") {
		t.Fatalf("a newline ends %q", md)
	}
	return s
}

func TestTheCheckSeesFaults(t *testing.T) {
	t.Parallel()
	if s := look("a <b>x</b>\n\n<div>\n"); len(s.html) != 3 {
		t.Errorf("HTML is %q", s.html)
	}
	if s := look("**甲 `x` [y](http://z)** &lt;"); words(s.prose.String()) != "甲y" || words(s.all.String()) != "甲xy" {
		t.Errorf("prose %q, all %q", s.prose.String(), s.all.String())
	}
	f := failures{}
	checkFences(&f, "- ```go\n  x")
	checkFences(&f, "````\n```")
	checkFences(&f, "```\n```")
	checkFences(&f, "    ```\n    x")
	if f.n != 2 {
		t.Errorf("%d open code blocks are found", f.n)
	}
}

type failures struct{ n int }

func (*failures) Helper()                 {}
func (f *failures) Fatalf(string, ...any) { f.n++ }
