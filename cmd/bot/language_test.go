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

// TestLanguage fails where a package has more findings than its line in the table allows, and where it has fewer.
// "go test ./cmd/bot -run TestLanguage -update" writes the table, unless the sum of a column would grow.
func TestLanguage(t *testing.T) {
	t.Parallel()
	findings := languageFindings(moduleFiles(t))
	found := map[string]int{} // by "package kind"
	for _, f := range findings {
		found[f.pkg+" "+f.kind]++
	}
	text, err := os.ReadFile(languageTable)
	if err != nil {
		t.Fatal(err)
	}
	allowed := parseLanguageTable(t, string(text))
	if *update {
		writeLanguageTable(t, allowed, found)
		return
	}
	for _, problem := range languageProblems(findings, found, allowed) {
		t.Error(problem)
	}
}

// languageProblems compares findings with the table.
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
	for _, key := range slices.Sorted(maps.Keys(allowed)) {
		if found[key] < allowed[key] {
			problems = append(problems, fmt.Sprintf("%s: %d findings, and %s allows %d: run go test ./cmd/bot -run TestLanguage -update",
				key, found[key], languageTable, allowed[key]))
		}
	}
	return problems
}

func parseLanguageTable(t *testing.T, text string) map[string]int {
	t.Helper()
	allowed := map[string]int{}
	for line := range strings.Lines(text) {
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

func TestLanguageFindings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, src string
		want      []string
	}{
		{"plain", "// Run ends the run when ctx ends.\nfunc Run() {}", nil},
		{"dialect", "// Run is\n// told what to do.\nfunc Run() {}", []string{`p/a.go:4: "told": write reported, stored, summarized`}},
		{"dialect over two lines", "// Run takes so\n// many of them.\nfunc Run() {}", []string{`p/a.go:3: "so many": write the number`}},
		{"opener", "// Run runs. What it\n// does is good.\nfunc Run() {}", []string{`p/a.go:3: a sentence opens with "What": begin with its noun`}},
		{"opener in a list", "// Run does:\n//   - Of this a part.\nfunc Run() {}", []string{`p/a.go:4: a sentence opens with "Of": begin with its noun`}},
		{"drawing", "// Run does:\n//\n//\tWhat is told here.\nfunc Run() {}", nil},
		{"directive", "//go:noinline\nfunc Run() {}", nil},
		{"sentence of 30 words", "// " + strings.Repeat("word ", 30) + "- end.\nfunc Run() {}", []string{
			"p/a.go:3: a sentence of 31 words, want at most 30: word word word word word word …",
		}},
		{"two sentences", "// " + strings.Repeat("word ", 20) + "end. " + strings.Repeat("word ", 20) + "end.\nfunc Run() {}", nil},
		{"names", "type heartBeat struct{ told int }\n\nfunc f(nobody int) { verdict := nobody; _ = verdict }", []string{
			`p/a.go:3: heartBeat has "heart": write heartbeat`, `p/a.go:3: told has "told": write reported, notified`,
			`p/a.go:5: nobody has "nobody": write none`, `p/a.go:5: verdict has "verdict": write result`,
		}},
		{"log", `func f() { log.Msg("Nobody was told") }`, []string{
			`p/a.go:3: "nobody": write no member, no caller`, `p/a.go:3: "told": write reported, stored, summarized`,
			`p/a.go:3: a sentence opens with "Nobody": begin with its noun`,
		}},
		{"error", `var err = fmt.Errorf("read anew: %w", cause)`, []string{`p/a.go:3: "anew": write again`}},
		{"help", "type cmd struct {\n\tA int `help:\"So many rows.\"`\n}", []string{`p/a.go:4: "so many": write the number`}},
		{"other text", `var s = "told"`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, f := range languageFindings([]goFile{parseGoFile(t, "p/a.go", []byte("package p\n\n"+tt.src+"\n"))}) {
				got = append(got, f.place+": "+f.text)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestLanguageTableRatchets(t *testing.T) {
	t.Parallel()
	findings := []finding{{"p", "long", "p/a.go:3", "a long sentence"}, {"p", "long", "p/a.go:9", "another"}}
	for _, tt := range []struct {
		allowed int
		want    []string
	}{
		{1, []string{"p long: 2 findings, at most 1 allowed:", "p/a.go:3: a long sentence", "p/a.go:9: another"}},
		{2, nil},
		{3, []string{"p long: 2 findings, and testdata/language.txt allows 3: run go test ./cmd/bot -run TestLanguage -update"}},
	} {
		got := languageProblems(findings, map[string]int{"p long": 2}, map[string]int{"p long": tt.allowed})
		if !slices.Equal(got, tt.want) {
			t.Errorf("%d allowed: got %q, want %q", tt.allowed, got, tt.want)
		}
	}
}
