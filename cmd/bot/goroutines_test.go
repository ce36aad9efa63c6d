package main

import (
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

// The tour of package bot lists each file that starts goroutines, with their bound: a reader looks for leaks there.
func TestGoroutinesAreListed(t *testing.T) {
	t.Parallel()
	starting, listed := map[string]bool{}, map[string]bool{}
	row := regexp.MustCompile(`(?m)^//\t((?:bot|cmd|sessions|sql|memory|compaction)/\S+\.go) +\S.*  +\S`)
	for _, f := range moduleFiles(t) {
		switch {
		case f.path == "bot/doc.go":
			_, table, _ := strings.Cut(commentsOf(f), "# Goroutines")
			table, _, _ = strings.Cut(table, "\n// # ")
			for _, m := range row.FindAllStringSubmatch(table, -1) {
				listed[m[1]] = true
			}
		case !f.isTest() && !isTestPackage(f.pkg()) && !strings.HasPrefix(f.path, "cmd/lab/") && startsGoroutines(f.ast):
			starting[f.path] = true
		}
	}
	for path := range starting {
		if !listed[path] {
			t.Errorf("%s starts goroutines: list them in bot/doc.go, with what bounds and ends them", path)
		}
	}
	for path := range listed {
		if !starting[path] {
			t.Errorf("bot/doc.go lists %s, which starts no goroutine", path)
		}
	}
}

func commentsOf(f goFile) string {
	var lines strings.Builder
	for _, group := range f.ast.Comments {
		for _, c := range group.List {
			lines.WriteString(c.Text + "\n")
		}
	}
	return lines.String()
}

// startsGoroutines finds go statements and the method Go of wait groups.
func startsGoroutines(file *ast.File) bool {
	found := false
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.CallExpr:
			sel, ok := n.Fun.(*ast.SelectorExpr)
			found = found || ok && sel.Sel.Name == "Go" && len(n.Args) == 1
		}
		return !found
	})
	return found
}
