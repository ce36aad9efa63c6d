package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// languageFindings reads comments, declared names and texts of files that are not generated.
func languageFindings(files []goFile) []finding {
	var findings []finding
	for _, f := range files {
		if ast.IsGenerated(f.ast) || f.path == languageTests {
			continue
		}
		r := languageReader{file: f, code: codeLines(f)}
		r.words(1, path.Base(f.path), strings.FieldsFunc(strings.TrimSuffix(path.Base(f.path), ".go"), func(c rune) bool { return c == '_' }))
		for _, group := range f.ast.Comments {
			r.comment(group)
		}
		ast.Inspect(f.ast, r.node)
		findings = append(findings, r.findings...)
	}
	slices.SortStableFunc(findings, func(a, b finding) int { return cmp.Compare(a.pkg, b.pkg) })
	return findings
}

// languageTests has examples of findings.
const languageTests = "cmd/bot/language_self_test.go"

// languageReader collects the findings of one file.
type languageReader struct {
	file     goFile
	code     map[int]token.Pos // the first code of each line
	findings []finding
}

// codeLines finds the first code of each line: a comment behind it trails.
func codeLines(f goFile) map[int]token.Pos {
	first := map[int]token.Pos{}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n.(type) {
		case nil, *ast.Comment, *ast.CommentGroup:
			return false
		}
		for _, pos := range []token.Pos{n.Pos(), n.End() - 1} {
			if line := f.fset.Position(pos).Line; first[line] == 0 || pos < first[line] {
				first[line] = pos
			}
		}
		return true
	})
	return first
}

func (r *languageReader) add(line int, kind, format string, args ...any) {
	r.findings = append(r.findings, finding{
		r.file.pkg(), kind, fmt.Sprintf("%s:%d", r.file.path, line), fmt.Sprintf(format, args...),
	})
}

// comment checks the sentences of a comment. Indented blocks are code or drawings, and headings are no sentences.
func (r *languageReader) comment(group *ast.CommentGroup) {
	from := r.file.fset.Position(group.Pos()).Line
	if code, ok := r.code[from]; ok && code < group.Pos() {
		r.trailing(from, strings.Fields(group.Text()))
	}
	var paragraph []string
	start := from
	flush := func() {
		r.prose(start, strings.Join(paragraph, "\n"))
		paragraph = nil
	}
	for i, line := range commentLines(group) {
		trimmed := strings.TrimSpace(line)
		item := line != trimmed && listItemRE.MatchString(trimmed)
		if trimmed == "" || item || strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "# ") {
			flush()
		}
		if trimmed == "" || strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "# ") {
			continue
		}
		if len(paragraph) == 0 {
			start = from + i
		}
		if item {
			trimmed = listItemRE.ReplaceAllString(trimmed, "")
		}
		paragraph = append(paragraph, trimmed)
	}
	flush()
}

// trailing checks the first word of a comment behind code, which is in lower case.
func (r *languageReader) trailing(line int, words []string) {
	if len(words) >= 2 && slices.Contains(trailingOpeners, words[0]) {
		r.add(line, "opener", "a trailing comment opens with %q: begin with its noun", words[0])
	}
}

var (
	listItemRE    = regexp.MustCompile(`^(?:[-*•]|\d+\.)\s+`)
	sentenceEndRE = regexp.MustCompile(`[.!?][)"”]?\s+`)
	dialectRE     = regexp.MustCompile(`(?i)\b(` + strings.Join(slices.SortedFunc(maps.Keys(dialect), func(a, b string) int {
		return cmp.Or(len(b)-len(a), cmp.Compare(a, b))
	}), "|") + `)\b`)
)

// commentLines are the lines of a comment without its marks, one for each line of the file.
func commentLines(group *ast.CommentGroup) []string {
	var lines []string
	for _, c := range group.List {
		if text, ok := strings.CutPrefix(c.Text, "/*"); ok {
			lines = append(lines, strings.Split(strings.TrimSuffix(text, "*/"), "\n")...)
			continue
		}
		text := strings.TrimPrefix(c.Text, "//")
		if text != "" && text[0] != ' ' && text[0] != '\t' {
			text = "" // a directive
		}
		lines = append(lines, strings.TrimPrefix(text, " "))
	}
	return lines
}

// prose checks a text that begins in a line.
func (r *languageReader) prose(line int, text string) {
	r.dialect(line, text)
	r.sentences(line, text)
}

func (r *languageReader) sentences(line int, text string) {
	for from := 0; from < len(text); {
		to := len(text)
		if end := sentenceEndRE.FindStringIndex(text[from:]); end != nil {
			to = from + end[1]
		}
		r.sentence(line+strings.Count(text[:from], "\n"), strings.Fields(text[from:to]))
		from = to
	}
}

// dialect looks for the phrases of dialect, but those that are exempt.
func (r *languageReader) dialect(line int, text string, exempt ...string) {
	for _, at := range dialectRE.FindAllStringIndex(strings.ReplaceAll(text, "\n", " "), -1) {
		word := strings.ToLower(strings.ReplaceAll(text[at[0]:at[1]], "\n", " "))
		if slices.Contains(exempt, word) {
			continue
		}
		r.add(line+strings.Count(text[:at[0]], "\n"), "dialect", "%q: write %s", word, dialect[word])
	}
}

func (r *languageReader) sentence(line int, words []string) {
	if len(words) >= 3 && slices.Contains(openers, words[0]) {
		r.add(line, "opener", "a sentence opens with %q: begin with its noun", words[0])
	}
	words = slices.DeleteFunc(words, func(w string) bool {
		return !strings.ContainsFunc(w, func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) })
	})
	if len(words) > maxSentence {
		r.add(line, "long", "a sentence of %d words, want at most %d: %s …", len(words), maxSentence, strings.Join(words[:6], " "))
	}
}

// pageFindings reads the English prose of a page, the cells of its tables one by one. Headings, code and drawings are left out.
func pageFindings(page docPage) []finding {
	r := languageReader{file: goFile{path: page.path}}
	var paragraph []string
	start, n := 0, 0
	flush := func() {
		r.prose(start, strings.Join(paragraph, "\n"))
		paragraph = nil
	}
	fenced := false
	for line := range strings.Lines(page.text) {
		n++
		fence := fenceRE.MatchString(line)
		fenced = fenced != fence
		line = strings.TrimSpace(codeSpanRE.ReplaceAllString(line, "code"))
		item := listItemRE.MatchString(line)
		if fence || item || line == "" || line[0] == '|' || line[0] == '#' {
			flush()
		}
		switch {
		case fenced, fence, line == "", line[0] == '#':
		case line[0] == '|':
			for cell := range strings.SplitSeq(line, "|") {
				r.prose(n, strings.TrimSpace(cell))
			}
		default:
			if len(paragraph) == 0 {
				start = n
			}
			paragraph = append(paragraph, listItemRE.ReplaceAllString(line, ""))
		}
	}
	flush()
	for i := range r.findings {
		r.findings[i].pkg = "docs"
	}
	return r.findings
}

// node checks the names and texts of one node.
func (r *languageReader) node(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BasicLit:
		r.literal(n)
	case *ast.FuncDecl:
		r.name(n.Name)
	case *ast.TypeSpec:
		r.name(n.Name)
	case *ast.ValueSpec:
		r.names(n.Names)
	case *ast.Field:
		r.names(n.Names)
		if n.Tag != nil {
			r.help(n.Tag)
		}
	case *ast.AssignStmt:
		for _, left := range n.Lhs {
			if name, ok := left.(*ast.Ident); ok && n.Tok == token.DEFINE {
				r.name(name)
			}
		}
	case *ast.CallExpr:
		r.call(n)
	}
	return true
}

func (r *languageReader) names(names []*ast.Ident) {
	for _, name := range names {
		r.name(name)
	}
}

func (r *languageReader) name(name *ast.Ident) {
	r.words(r.line(name), name.Name, camelWords(name.Name))
}

func (r *languageReader) words(line int, name string, words []string) {
	for _, word := range words {
		if plain, ok := nameWords[strings.ToLower(word)]; ok {
			r.add(line, "name", "%s has %q: write %s", name, word, plain)
		}
	}
}

func (r *languageReader) line(n ast.Node) int { return r.file.fset.Position(n.Pos()).Line }

// help checks the text of a command line's flag or command.
func (r *languageReader) help(tag *ast.BasicLit) {
	if text, err := strconv.Unquote(tag.Value); err == nil {
		r.sentences(r.line(tag), reflect.StructTag(text).Get("help"))
	}
}

// literal looks for dialect in the texts of a program. Tests quote what people say.
func (r *languageReader) literal(lit *ast.BasicLit) {
	found, text := textOf(lit)
	list := strings.Contains(text, "\n\t")
	if found == nil || list || r.file.isTest() || textIsData(r.file.path) || !strings.Contains(text, " ") {
		return
	}
	r.dialect(r.line(lit), text, "what is", "company")
}

// textIsData reports whether the texts of a file are rules and word lists.
func textIsData(name string) bool {
	return strings.HasPrefix(name, "memory/") || name == "cmd/lab/replay/talk.go"
}

// call checks the sentences of log messages, errors and descriptions of the command line, and the messages of tests.
func (r *languageReader) call(call *ast.CallExpr) {
	fn, _ := call.Fun.(*ast.SelectorExpr)
	var on string
	if fn != nil {
		if name, ok := fn.X.(*ast.Ident); ok {
			on = name.Name
		}
	}
	switch {
	case r.file.isTest():
		if on == "t" || on == "b" || len(call.Args) > 0 && isName(call.Args[0], "t") {
			r.message(call.Args)
		}
	case fn == nil || len(call.Args) == 0:
	case fn.Sel.Name == "Msg", on == "errors" && fn.Sel.Name == "New", on == "fmt" && fn.Sel.Name == "Errorf",
		on == "kong" && fn.Sel.Name == "Description":
		if lit, text := textOf(call.Args[0]); lit != nil {
			r.sentences(r.line(lit), text)
		}
	}
}

// message checks the first text among the arguments of a call with a *testing.T: later ones and raw ones are data.
func (r *languageReader) message(args []ast.Expr) {
	for _, arg := range args {
		if lit, text := textOf(arg); lit != nil {
			if strings.Contains(text, " ") && lit.Value[0] == '"' {
				r.dialect(r.line(lit), text, "what is")
				r.sentences(r.line(lit), text)
			}
			return
		}
	}
}

func isName(expr ast.Expr, name string) bool {
	id, ok := expr.(*ast.Ident)
	return ok && id.Name == name
}

// textOf is the literal of an expression and its value; it is nil where the expression is no text.
func textOf(expr ast.Expr) (*ast.BasicLit, string) {
	lit, ok := expr.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return nil, ""
	}
	text, err := strconv.Unquote(lit.Value)
	if err != nil {
		return nil, ""
	}
	return lit, text
}

// camelWords splits leaseEpoch into lease and Epoch.
func camelWords(name string) []string {
	var words []string
	from := 0
	for i, c := range name {
		if i > from && unicode.IsUpper(c) {
			words, from = append(words, name[from:i]), i
		}
	}
	return append(words, name[from:])
}

// scenarioFindings reads the comments of the scenarios.
func scenarioFindings(t *testing.T) []finding {
	t.Helper()
	names, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("found no scenarios: %v", err)
	}
	var findings []finding
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		script, _, _ := strings.Cut(string(text), "\n-- ")
		findings = append(findings, scenarioCommentFindings(path.Join("cmd/bot", name), script)...)
	}
	return findings
}

// scenarioCommentFindings checks the comments between the commands of a scenario.
func scenarioCommentFindings(name, script string) []finding {
	r := languageReader{file: goFile{path: name}}
	var paragraph []string
	n := 0
	for line := range strings.Lines(script + "\n") {
		n++
		if text, ok := strings.CutPrefix(line, "#"); ok {
			paragraph = append(paragraph, strings.TrimSpace(text))
			continue
		}
		r.prose(n-len(paragraph), strings.Join(paragraph, "\n"))
		paragraph = nil
	}
	return r.findings
}
