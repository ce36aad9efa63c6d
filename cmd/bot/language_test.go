package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// The language rule of CONTRIBUTING.md, as far as a program can check it.

// maxSentence is the number of words in a sentence of a comment, log message, error or help text. The aim is 20.
const maxSentence = 30

// dialect maps phrases that this code used to have to their plain words.
var dialect = map[string]string{
	"told": "reported, stored, summarized", "tell": "report, summarize", "tells": "reports, summarizes",
	"nobody": "no member, no caller", "somebody": "a person, a caller", "whoever": "a noun", "so many": "the number",
	"anew": "again", "at rest": "idle", "in hand": "in progress", "put down": "stored, released", "company": "organization",
	"come through": "succeed", "comes through": "succeeds", "came of": "resulted from", "comes of": "results from",
	"for want of": "without", "whence": "from which", "as ever": "unchanged", "beside it": "next to it",
	"for good": "permanently", "of others": "a noun", "of theirs": "a noun", "what is": "a noun",
}

// openers are first words that leave a sentence without a noun as its subject.
var openers = []string{"What", "Who", "Where", "Whatever", "Whoever", "Else", "Of", "Nor", "None", "Nobody"}

// nameWords are parts of identifiers and file names that have a plain word.
var nameWords = map[string]string{
	"told": "reported, notified", "tell": "report, summarize", "tells": "reports", "nobody": "none", "somebody": "member",
	"whoever": "caller", "anew": "again", "heart": "heartbeat", "tenure": "term", "parcel": "batch", "verdict": "result",
	"tally": "count", "crowd": "group", "crowded": "backpressured", "pile": "group", "trouble": "fault", "doubt": "invalidate",
	"chore": "job", "chores": "jobs", "whence": "source",
}

// languageTable has the findings that each package may still have. A package without a line may have none.
const languageTable = "testdata/language.txt"

// finding is one breach of the language rule.
type finding struct {
	pkg, kind, place, text string
}

// findingKinds are the columns of the table.
var findingKinds = []string{"dialect", "opener", "long", "name"}

// TestLanguage fails where a package has more findings than its line in the table allows.
// "go test ./cmd/bot -run TestLanguage -update" writes the table, unless the sum of a column would grow.
func TestLanguage(t *testing.T) {
	t.Parallel()
	findings := allFindings(t)
	found := countFindings(findings)
	allowed := readLanguageTable(t)
	if *update {
		writeLanguageTable(t, allowed, found)
		return
	}
	for _, problem := range languageProblems(findings, found, allowed) {
		t.Error(problem)
	}
}

// The numbers of the table fall with the findings. This is a test of its own, so that packages can be reworded side by side.
func TestTableOfLanguageIsTight(t *testing.T) {
	t.Parallel()
	for _, problem := range staleAllowances(countFindings(allFindings(t)), readLanguageTable(t)) {
		t.Error(problem)
	}
}

// allFindings are those of code and documentation.
func allFindings(t *testing.T) []finding {
	t.Helper()
	findings := languageFindings(moduleFiles(t))
	pages := docPages(t)
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		findings = append(findings, pageFindings(pages[name])...)
	}
	return findings
}

// countFindings counts by "package kind".
func countFindings(findings []finding) map[string]int {
	found := map[string]int{}
	for _, f := range findings {
		found[f.pkg+" "+f.kind]++
	}
	return found
}

// languageProblems lists the findings of packages that have more of a kind than the table allows.
func languageProblems(findings []finding, found, allowed map[string]int) []string {
	var problems []string
	for _, key := range slices.Sorted(maps.Keys(found)) {
		if found[key] <= allowed[key] {
			continue
		}
		problems = append(problems, fmt.Sprintf("%s: %d findings, at most %d allowed:", key, found[key], allowed[key]))
		for _, f := range findings {
			if f.pkg+" "+f.kind == key {
				problems = append(problems, f.place+": "+f.text)
			}
		}
	}
	return problems
}

// staleAllowances lists the numbers of the table that could be lower.
func staleAllowances(found, allowed map[string]int) []string {
	var problems []string
	for _, key := range slices.Sorted(maps.Keys(allowed)) {
		if found[key] < allowed[key] {
			problems = append(problems, fmt.Sprintf("%s: %d findings, and %s allows %d: run go test ./cmd/bot -run TestLanguage -update",
				key, found[key], languageTable, allowed[key]))
		}
	}
	return problems
}

func readLanguageTable(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile(languageTable)
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string]int{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != 1+len(findingKinds) {
			t.Fatalf("%s: cannot read the line %q", languageTable, line)
		}
		for i, kind := range findingKinds {
			n, err := strconv.Atoi(fields[i+1])
			if err != nil {
				t.Fatalf("%s: %v", languageTable, err)
			}
			if n > 0 {
				allowed[fields[0]+" "+kind] = n
			}
		}
	}
	return allowed
}

func writeLanguageTable(t *testing.T, allowed, found map[string]int) {
	t.Helper()
	for _, kind := range findingKinds {
		before, now := sumOfKind(allowed, kind), sumOfKind(found, kind)
		if len(allowed) > 0 && now > before {
			t.Fatalf("%d findings of the kind %s, and the table allows %d in all: reword the new ones", now, kind, before)
		}
	}
	packages := map[string]bool{}
	for key := range found {
		packages[strings.Fields(key)[0]] = true
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Findings of TestLanguage that remain, by package; the numbers may only fall.\n%-36s", "#")
	for _, kind := range findingKinds {
		fmt.Fprintf(&b, "%9s", kind)
	}
	for _, pkg := range slices.Sorted(maps.Keys(packages)) {
		fmt.Fprintf(&b, "\n%-36s", pkg)
		for _, kind := range findingKinds {
			fmt.Fprintf(&b, "%9d", found[pkg+" "+kind])
		}
	}
	if err := os.WriteFile(languageTable, []byte(b.String()+"\n"), 0o644); err != nil { //nolint:gosec // a file of the repository
		t.Fatal(err)
	}
}

func sumOfKind(counts map[string]int, kind string) (sum int) {
	for key, n := range counts {
		if strings.HasSuffix(key, " "+kind) {
			sum += n
		}
	}
	return sum
}

// languageFindings reads comments, declared names, log messages, errors and help texts of files that are not tests.
func languageFindings(files []goFile) []finding {
	var findings []finding
	for _, f := range files {
		if f.isTest() || ast.IsGenerated(f.ast) {
			continue
		}
		r := languageReader{file: f}
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

// languageReader collects the findings of one file.
type languageReader struct {
	file     goFile
	findings []finding
}

func (r *languageReader) add(line int, kind, format string, args ...any) {
	r.findings = append(r.findings, finding{
		r.file.pkg(), kind, fmt.Sprintf("%s:%d", r.file.path, line), fmt.Sprintf(format, args...),
	})
}

// comment checks the sentences of a comment. Indented blocks are code or drawings, and headings are no sentences.
func (r *languageReader) comment(group *ast.CommentGroup) {
	from := r.file.fset.Position(group.Pos()).Line
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
	for _, at := range dialectRE.FindAllStringIndex(strings.ReplaceAll(text, "\n", " "), -1) {
		word := strings.ToLower(strings.ReplaceAll(text[at[0]:at[1]], "\n", " "))
		r.add(line+strings.Count(text[:at[0]], "\n"), "dialect", "%q: write %s", word, dialect[word])
	}
	for from := 0; from < len(text); {
		to := len(text)
		if end := sentenceEndRE.FindStringIndex(text[from:]); end != nil {
			to = from + end[1]
		}
		r.sentence(line+strings.Count(text[:from], "\n"), strings.Fields(text[from:to]))
		from = to
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
			for _, cell := range strings.Split(line, "|") {
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
		r.prose(r.line(tag), reflect.StructTag(text).Get("help"))
	}
}

// call checks the texts of log messages, errors and descriptions of the command line.
func (r *languageReader) call(call *ast.CallExpr) {
	fn, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 {
		return
	}
	on, _ := fn.X.(*ast.Ident)
	switch {
	case fn.Sel.Name == "Msg":
	case on != nil && on.Name == "errors" && fn.Sel.Name == "New":
	case on != nil && on.Name == "fmt" && fn.Sel.Name == "Errorf":
	case on != nil && on.Name == "kong" && fn.Sel.Name == "Description":
	default:
		return
	}
	if lit, ok := call.Args[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
		if text, err := strconv.Unquote(lit.Value); err == nil {
			r.prose(r.line(lit), text)
		}
	}
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
