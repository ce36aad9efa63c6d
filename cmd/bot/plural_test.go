package main

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// countedRE matches a place with a word in the plural behind it, such as "%d new messages".
var countedRE = regexp.MustCompile(`%(?:\[\d\])?[ds](?: [a-z]+)? [a-z]*[a-rt-z]s\b`)

// noPlurals are words after a place that end like a plural.
var noPlurals = []string{"is", "was", "has", "its", "yes", "belongs", "denies", "needs", "refuses", "waits", "answers", "times", "this"}

func isHan(r rune) bool { return unicode.Is(unicode.Han, r) }

// A text for people has a mark for the plural behind a number, as in "%d message{|s}": wording.Count says "1 message". Errors and what a model reads
// have none.
func TestPluralsFollowTheirNumbers(t *testing.T) {
	t.Parallel()
	check := func(place, text string) {
		for _, found := range countedRE.FindAllString(text, -1) {
			if words := strings.Fields(found); !slices.Contains(noPlurals, words[len(words)-1]) {
				t.Errorf("%s: %q needs a mark such as {|s}", place, found)
			}
		}
	}
	for _, dir := range []string{"bot/wording", "bot/command", "bot/console", "bot/console/render", "bot/outbox", "bot/schedule", "bot/turn", "bot/turn/answer", "bot/turn/choice", "bot/turn/slot", "cmd/bot"} {
		files, err := filepath.Glob(filepath.Join("..", "..", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files in %s: %v", dir, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(tree, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					name, ok := n.Fun.(*ast.SelectorExpr)
					return !ok || name.Sel.Name != "Errorf" && name.Sel.Name != "Msg"
				case *ast.BasicLit:
					if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && !strings.ContainsFunc(text, isHan) {
						check(file, text)
					}
				}
				return true
			})
		}
	}
	text, err := os.ReadFile("../../bot/console/render/catalog/en.json")
	if err != nil {
		t.Fatal(err)
	}
	var catalog map[string]string
	if err := json.Unmarshal(text, &catalog); err != nil {
		t.Fatal(err)
	}
	for key, text := range catalog {
		check("the catalog at "+key, text)
	}
	for text, found := range map[string]bool{"%d messages": true, "%s new tokens left": true, "%d message{|s}": false, "at %s class": false} {
		if countedRE.MatchString(text) != found {
			t.Errorf("%q is found: %v", text, !found)
		}
	}
}
