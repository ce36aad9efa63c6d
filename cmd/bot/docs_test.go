package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
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

	"github.com/alecthomas/kong"
	"github.com/tailscale/hujson"
)

// maxPage bounds a page that people read through, and maxReadme the first one.
const (
	maxPage   = 12 << 10
	maxReadme = 10 << 10
)

// references are tables that are written by a program. People search them.
var references = []string{"docs/configuration.md", "docs/commands.md", "docs/properties.md"}

// maxSize is the bound of a page in bytes; 0: none.
func maxSize(name string) int {
	switch {
	case strings.HasPrefix(name, "README"):
		return maxReadme
	case strings.HasPrefix(name, "docs/") && !slices.Contains(references, name):
		return maxPage
	}
	return 0
}

// notOurs are names in the documentation that are not in this repository: files of the reader, of a model's view, of
// other programs.
var notOurs = map[string]bool{
	"MEMORY.md": true, "memory/group/2026-03-05.md": true, "mine.jsonc": true, "statement_timeout": true,
}

// TestDocs finds names in the documentation that are not there: files, links, commands, flags, make targets, configuration
// keys, tables and columns, environment variables, tests, metrics, log messages. Package comments may name files too.
func TestDocs(t *testing.T) {
	t.Parallel()
	w := loadWords(t)
	for _, page := range w.pages {
		for _, problem := range w.check(page) {
			t.Error(problem)
		}
	}
	for _, f := range moduleFiles(t) {
		for _, name := range namedFileRE.FindAllString(f.ast.Doc.Text(), -1) {
			if !w.files[name] && !w.hasBelow(f.pkg(), name) {
				t.Errorf("%s: the package comment names %s, and there is no such file", f.path, name)
			}
		}
	}
	for name, page := range w.pages {
		if most := maxSize(name); most > 0 && len(page.text) > most {
			t.Errorf("%s: %d bytes, want at most %d", name, len(page.text), most)
		}
	}
	for name := range strings.SplitSeq(w.makeVariable("LONG")+"|"+w.makeVariable("SHARED")+"|"+w.makeVariable("DAYS"), "|") {
		if !slices.ContainsFunc(w.tests, func(test string) bool { return strings.HasPrefix(test, name) }) {
			t.Errorf("Makefile: no test begins with %s", name)
		}
	}
}

// docPage is one page of the documentation.
type docPage struct{ path, text string }

// docWords is what the documentation may name.
type docWords struct {
	pages    map[string]docPage
	files    map[string]bool // paths from the root, folders too
	bases    map[string]bool // their last elements
	texts    []string        // string literals of the program and the lab
	words    map[string]bool // identifiers in SQL, configuration, literals
	keys     map[string]bool // paths of the configuration
	tests    []string
	bot      *kong.Node
	lab      map[string]bool
	makefile string
}

func loadWords(t *testing.T) *docWords {
	t.Helper()
	w := &docWords{
		pages: docPages(t), files: map[string]bool{}, bases: map[string]bool{}, words: map[string]bool{},
		keys: map[string]bool{}, lab: map[string]bool{},
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(moduleRoot, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	err := fs.WalkDir(os.DirFS(moduleRoot), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (name == "data" || name == "bin" || name == ".git" || d.Name() == "node_modules"):
			return fs.SkipDir
		}
		w.files[name], w.bases[path.Base(name)] = true, true
		switch ext := path.Ext(name); {
		case ext == ".sql", ext == ".yaml", ext == ".jsonc", name == "Makefile":
			w.addWords(read(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w.makefile = read("Makefile")
	w.addKeys(t, read("config.jsonc"))
	w.addCode(moduleFiles(t))
	parser, err := kong.New(&cli{}, kong.Name("bot"))
	if err != nil {
		t.Fatal(err)
	}
	w.bot = parser.Model.Node
	return w
}

// docPages reads the pages of the documentation, but for the list of changes.
func docPages(t *testing.T) map[string]docPage {
	t.Helper()
	pages := map[string]docPage{}
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		names, err := fs.Glob(os.DirFS(moduleRoot), pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(filepath.Join(moduleRoot, name))
			if err != nil {
				t.Fatal(err)
			}
			if name != "CHANGELOG.md" {
				pages[name] = docPage{name, string(text)}
			}
		}
	}
	return pages
}

var wordRE = regexp.MustCompile(`\w+`)

func (w *docWords) addWords(text string) {
	for _, word := range wordRE.FindAllString(text, -1) {
		w.words[word] = true
	}
}

func (w *docWords) addKeys(t *testing.T, text string) {
	t.Helper()
	file, err := hujson.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var walk func(at string, v hujson.Value)
	walk = func(at string, v hujson.Value) {
		w.keys[at] = true
		switch v := v.Value.(type) {
		case *hujson.Object:
			for _, m := range v.Members {
				name := m.Name.Value.(hujson.Literal).String()
				walk(strings.TrimPrefix(at+"."+name, "."), m.Value)
			}
		case *hujson.Array:
			for _, e := range v.Elements {
				walk(at, e)
				walk(at+"[]", e)
			}
		}
	}
	walk("", file)
}

// addCode reads string literals, the names of tests, and the commands of the lab.
func (w *docWords) addCode(files []goFile) {
	for _, f := range files {
		if f.isTest() {
			for _, decl := range f.ast.Decls {
				if fn, ok := decl.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "Test") {
					w.tests = append(w.tests, fn.Name.Name)
				}
			}
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
					w.texts = append(w.texts, text)
					w.addWords(text)
				}
			case *ast.Field:
				if n.Tag != nil && len(n.Names) == 1 && strings.HasPrefix(f.path, "cmd/lab/") {
					if tag, err := strconv.Unquote(n.Tag.Value); err == nil {
						if _, ok := reflect.StructTag(tag).Lookup("cmd"); ok {
							w.lab[strings.ToLower(n.Names[0].Name)] = true
						}
					}
				}
			}
			return true
		})
	}
}

// hasBelow looks for a file in a folder and in those below it.
func (w *docWords) hasBelow(folder, name string) bool {
	for file := range w.files {
		if strings.HasPrefix(file, folder+"/") && strings.HasSuffix(file, "/"+name) {
			return true
		}
	}
	return false
}

// makeVariable is the value of a variable of the Makefile.
func (w *docWords) makeVariable(name string) string {
	_, value, _ := strings.Cut(w.makefile, "\n"+name+" := ")
	value, _, _ = strings.Cut(value, "\n")
	return value
}

var (
	codeSpanRE   = regexp.MustCompile("`([^`\n]+)`")
	docLinkRE    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	fenceRE      = regexp.MustCompile("^\\s*```")
	docFileRE    = regexp.MustCompile(`^[\w./-]+\.(?:go|sql|md|jsonc|yaml|txtar|svg|sh)$`)
	namedFileRE  = regexp.MustCompile(`[\w./-]+\.(?:go|sql|md|jsonc)\b`)
	docFolderRE  = regexp.MustCompile(`^(?:bot|cmd|compaction|deploy|docs|memory|sessions|sql)(?:/[a-z_]+)+/?$`)
	docKeyRE     = regexp.MustCompile(`^(?:dingtalk|llm|agent|cluster|database|admin|shutdown|log)(?:\.[a-z_]+(?:\[\])?)+$`)
	snakeRE      = regexp.MustCompile(`^[a-z][a-z0-9]*(?:_[a-z0-9]+)+$`)
	environRE    = regexp.MustCompile(`^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$`)
	metricRE     = regexp.MustCompile(`\bebb_[a-z_]+`)
	docTestRE    = regexp.MustCompile(`^Test[A-Z]\w+$`)
	slashRE      = regexp.MustCompile(`^/([\p{Han}a-z]+)`)
	logMessageRE = regexp.MustCompile(`^[A-Z][a-z]+(?: [\w',:-]+)+$`)
)

// check names what a page names and is not there.
func (w *docWords) check(page docPage) []string {
	var problems []string
	fenced := false
	n := 0
	for line := range strings.Lines(page.text) {
		n++
		add := func(format string, args ...any) {
			problems = append(problems, fmt.Sprintf("%s:%d: %s", page.path, n, fmt.Sprintf(format, args...)))
		}
		switch {
		case fenceRE.MatchString(line):
			fenced = !fenced
			continue
		case fenced:
			if why := w.refuseCommand(strings.TrimSpace(line)); why != "" {
				add("%s", why)
			}
			continue
		}
		for _, m := range docLinkRE.FindAllStringSubmatch(line, -1) {
			if why := w.refuseLink(page, m[1]); why != "" {
				add("%s", why)
			}
		}
		for _, m := range codeSpanRE.FindAllStringSubmatch(line, -1) {
			if why := w.refuseSpan(strings.ReplaceAll(m[1], `\|`, "|")); why != "" {
				add("`%s`: %s", m[1], why)
			}
		}
	}
	return problems
}

// refuseSpan says why a name in the documentation is wrong, or nothing.
func (w *docWords) refuseSpan(span string) string {
	if notOurs[span] || strings.ContainsAny(span, "…*<>{$") || strings.Contains(span, "_NAME.") {
		return ""
	}
	for _, metric := range metricRE.FindAllString(span, -1) {
		if !w.hasMetric(strings.TrimSuffix(strings.TrimPrefix(metric, "ebb_"), "_bucket")) {
			return "no such metric"
		}
	}
	switch slash := slashRE.FindStringSubmatch(span); {
	case docFileRE.MatchString(span):
		if !w.files[span] && !w.files["docs/"+span] && (strings.Contains(span, "/") || !w.bases[span]) {
			return "no such file"
		}
	case docFolderRE.MatchString(span):
		if !w.files[strings.TrimSuffix(span, "/")] {
			return "no such folder"
		}
	case docKeyRE.MatchString(span):
		if !w.keys[span] {
			return "no such key of the configuration"
		}
	case strings.HasPrefix(span, "ebb_"):
	case snakeRE.MatchString(span), environRE.MatchString(span):
		if !w.words[span] {
			return "no such key, column, tool or variable"
		}
	case docTestRE.MatchString(span):
		if !slices.Contains(w.tests, span) {
			return "no such test"
		}
	case slash != nil:
		if !slices.ContainsFunc(w.texts, func(s string) bool { return s == slash[1] || strings.Contains(s, "/"+slash[1]) }) {
			return "no such command"
		}
	case logMessageRE.MatchString(span):
		if !slices.ContainsFunc(w.texts, func(s string) bool { return strings.Contains(s, span) }) {
			return "no such message"
		}
	default:
		return w.refuseCommand(span)
	}
	return ""
}

// hasMetric looks for a name without its namespace, which may be parted into a subsystem and the rest.
func (w *docWords) hasMetric(name string) bool {
	subsystem, rest, _ := strings.Cut(name, "_")
	return w.words[name] || w.words[subsystem] && w.words[rest]
}

// refuseCommand says why a command line is wrong: its program is bot, lab or make.
func (w *docWords) refuseCommand(line string) string {
	line, _, _ = strings.Cut(line, "#")
	args := strings.Fields(line)
	if len(args) < 2 {
		return ""
	}
	switch {
	case args[0] == "bot" || args[0] == "bin/bot":
		return refuseBot(w.bot, args[1:])
	case args[0] == "lab" || strings.HasPrefix(line, "go run ./cmd/lab "):
		name := args[1]
		if args[0] == "go" {
			name = args[3]
		}
		for name := range strings.SplitSeq(name, "|") {
			if !w.lab[name] && name != "--help" {
				return "lab has no command " + name
			}
		}
	case args[0] == "make":
		for _, target := range args[1:] {
			if isLower(target) && !strings.Contains(w.makefile, "\n"+target+":") {
				return "no target " + target
			}
		}
	}
	return ""
}

// refuseBot walks the commands of bot as far as their names go, then looks for the flags.
func refuseBot(node *kong.Node, args []string) string {
	for len(args) > 0 && len(node.Children) > 0 && !strings.HasPrefix(args[0], "-") {
		var next *kong.Node
		for name := range strings.SplitSeq(strings.Trim(args[0], "[]"), "|") {
			at := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == name })
			if at < 0 {
				return fmt.Sprintf("%s has no command %s", node.Name, name)
			}
			next = node.Children[at]
		}
		node, args = next, args[1:]
	}
	for _, arg := range args {
		name, isFlag := strings.CutPrefix(strings.Trim(arg, "[]"), "--")
		name, _, _ = strings.Cut(name, "=")
		if !isFlag || name == "help" {
			continue
		}
		if !slices.ContainsFunc(node.AllFlags(false), func(group []*kong.Flag) bool {
			return slices.ContainsFunc(group, func(f *kong.Flag) bool { return f.Name == name })
		}) {
			return fmt.Sprintf("%s has no flag --%s", node.Name, name)
		}
	}
	return ""
}

func isLower(s string) bool {
	return strings.IndexFunc(s, func(c rune) bool { return c != '-' && !unicode.IsLower(c) }) < 0
}

// refuseLink says why a link leads nowhere.
func (w *docWords) refuseLink(page docPage, target string) string {
	if strings.Contains(target, "://") {
		return ""
	}
	file, anchor, _ := strings.Cut(target, "#")
	to := page.path
	if file != "" {
		to = path.Join(path.Dir(page.path), file)
	}
	if !w.files[to] {
		return fmt.Sprintf("the link to %s leads nowhere", target)
	}
	if anchor == "" {
		return ""
	}
	for line := range strings.Lines(w.pages[to].text) {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && line[0] == '#' && slug(title) == anchor {
			return ""
		}
	}
	return fmt.Sprintf("%s has no heading for the link to %s", to, target)
}

// slug is the anchor that a heading has on a page.
func slug(title string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case unicode.IsLetter(c), unicode.IsDigit(c), c == '-', c == '_':
			return unicode.ToLower(c)
		case c == ' ':
			return '-'
		}
		return -1
	}, strings.TrimSpace(title))
}

func TestDocsRefuse(t *testing.T) {
	t.Parallel()
	w := loadWords(t)
	for text, want := range map[string]string{
		"`cmd/bot/main.go`": "", "`cmd/bot/nothere.go`": "no such file", "`deployment.yaml`": "",
		"`bot/dingtalk`": "", "`bot/nothere`": "no such folder",
		"`agent.compaction.policy`": "", "`agent.compaction.nothere`": "no such key of the configuration",
		"`llm.models[].name`": "", "`compaction_log`": "", "`nothere_column`": "no such key, column, tool or variable",
		"`DINGTALK_CLIENT_ID`": "", "`NOT_THERE`": "no such key, column, tool or variable",
		"`TestDocs`": "", "`TestNotThere`": "no such test",
		"`/compact undo`": "", "`/压缩撤销`": "", "`/nothere`": "no such command",
		"`Executing memory flush`": "", "`Never logged at all`": "no such message",
		"`bot memory list --scope user`": "", "`bot memory nothere`": "memory has no command nothere", "`bot memory list --nothere`": "list has no flag --nothere",
		"`bot deadletters list|retry`": "", "`lab bench`": "", "`lab nothere`": "lab has no command nothere",
		"`make test`": "", "`make nothere`": "no target nothere",
		"`ebb_compactions_total`": "", "`rate(ebb_nothere_total[5m])`": "no such metric",
		"[a](scaling.md)": "", "[a](nothere.md)": "the link to nothere.md leads nowhere",
		"[a](scaling.md#what-it-carries)": "", "[a](scaling.md#nothere)": "docs/scaling.md has no heading for the link to scaling.md#nothere",
		"```sh\nbin/bot nothere\n```": "bot has no command nothere", "```sh\nbin/bot serve -c mine.jsonc\n```": "",
	} {
		got := strings.Join(w.check(docPage{"docs/page.md", text}), "\n")
		if want == "" && got != "" || !strings.HasSuffix(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
