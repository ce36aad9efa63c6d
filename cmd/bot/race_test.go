package main

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// TestRaceDetectorSeesGoroutines holds that `make test-race` runs each package of the gateway that starts goroutines. In
// other packages below sql it runs the tests that start some: the code there starts none, and tests of package bot use it too.
func TestRaceDetectorSeesGoroutines(t *testing.T) {
	t.Parallel()
	w := loadWords(t)
	packages := strings.Fields(w.makeVariable("CONCURRENT"))
	shared := strings.Split(w.makeVariable("SHARED"), "|")
	raced := 0
	for _, f := range moduleFiles(t) {
		room, _, _ := strings.Cut(f.path, "/")
		if !slices.Contains([]string{"bot", "sessions", "sql"}, room) && f.pkg() != "cmd/bot/gateway" {
			continue
		}
		for _, d := range f.ast.Decls {
			switch name := goroutineIn(d); {
			case name == "" || slices.ContainsFunc(packages, func(p string) bool { return covers(p, f.pkg()) }):
			case room == "sql" && f.isTest() && (!strings.HasPrefix(name, "Test") || slices.Contains(shared, name)):
				raced++
			default:
				t.Errorf("%s: %s starts a goroutine, and make test-race does not run it", f.path, name)
			}
		}
	}
	if raced == 0 {
		t.Error("no test below sql starts a goroutine: this test looks in the wrong place")
	}
}

// covers reports whether a package pattern of the go command, from the root of the module, matches a package.
func covers(pattern, pkg string) bool {
	below, all := strings.CutSuffix(pattern, "/...")
	root := strings.TrimPrefix(below, "./")
	return pkg == root || all && strings.HasPrefix(pkg, root+"/")
}

// goroutineIn is the name of a declared function that starts a goroutine; empty for others.
func goroutineIn(d ast.Decl) string {
	f, ok := d.(*ast.FuncDecl)
	if !ok {
		return ""
	}
	name := ""
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			name = f.Name.Name
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Go" {
				name = f.Name.Name
			}
		}
		return true
	})
	return name
}
