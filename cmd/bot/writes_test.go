package main

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// storageReads are the methods of the storage that commands in a chat and the command line call themselves. All changes
// go through bot/manage, which checks the right of the person who asks; a method that is not listed here counts as a
// change.
var storageReads = []string{
	"Begin", // with room for no message it reads, and marks none
	"CallCounts", "Compaction", "CompactionEnds", "CompactionFlushes", "Compactions", "Costs", "CountWithheld", "DeadLetters", "Debts", "Events", "GivenUpCards", "Known", "Memories", "MemoryByID",
	"MessagesBefore", "OthersTokens", "Owed", "Pending", "PlaceOf", "Range", "ReceiptOf", "Restarts", "ScopeOf", "Session", "Sessions", "Spent", "Summary", "Used",
}

// storageImporters are files of the command line that write to the storage themselves, each for a reason.
var storageImporters = []string{
	"cmd/bot/cmd_import.go", // it is a replica of its own, under a lease; bot/manage records the whole import
}

func TestCommandsWriteThroughManage(t *testing.T) {
	t.Parallel()
	files := moduleFiles(t)
	for _, problem := range directWrites(files, storageMethods(files)) {
		t.Error(problem)
	}
}

func TestDirectWritesAreFound(t *testing.T) {
	t.Parallel()
	port := parseGoFile(t, "memory/rights.go", []byte("package memory\n\ntype Rights interface {\n\tForgetMemory(ctx context.Context, id int64) error\n}\n"))
	for call, refused := range map[string]bool{
		"h.cfg.Rights.ForgetMemory(ctx, 3)": true, "h.manage.ForgetMemory(ctx, 3)": false, "h.store.Session(ctx, key)": false, "now(ctx)": false,
	} {
		caller := parseGoFile(t, "bot/command/memory.go", []byte("package command\n\nfunc f() { "+call+" }\n"))
		if got := directWrites([]goFile{caller}, storageMethods([]goFile{port})); (len(got) > 0) != refused {
			t.Errorf("%s: problems %q, want some: %v", call, got, refused)
		}
	}
}

// storageMethods are the names of the methods of the stores and of their ports.
func storageMethods(files []goFile) map[string]bool {
	names := map[string]bool{}
	for _, f := range files {
		store := f.pkg() == "sql" || strings.HasPrefix(f.pkg(), "sql/") && f.pkg() != "sql/dbsqlc" && f.pkg() != "sql/localpg"
		port := f.pkg() == "sessions" || f.pkg() == "memory"
		if f.isTest() || !store && !port {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if store && n.Recv != nil && n.Name.IsExported() && takesContext(n.Type) {
					names[n.Name.Name] = true
				}
			case *ast.InterfaceType:
				for _, m := range n.Methods.List {
					if of, ok := m.Type.(*ast.FuncType); ok && takesContext(of) {
						names[m.Names[0].Name] = true
					}
				}
			}
			return true
		})
	}
	return names
}

// takesContext reports whether a function may ask a storage: its first parameter is a context.
func takesContext(f *ast.FuncType) bool {
	if len(f.Params.List) == 0 {
		return false
	}
	of, ok := f.Params.List[0].Type.(*ast.SelectorExpr)
	return ok && of.Sel.Name == "Context"
}

// directWrites lists the calls of commands and of the command line that may change the storage without bot/manage.
func directWrites(files []goFile, methods map[string]bool) []string {
	var problems []string
	for _, f := range files {
		if f.isTest() || f.pkg() != "bot/command" && f.pkg() != "cmd/bot" || slices.Contains(storageImporters, f.path) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if ok && len(call.Args) > 0 && !isPackage(f, method.X) && methods[method.Sel.Name] && !slices.Contains(storageReads, method.Sel.Name) && !isManager(method.X, managersOf(f)) {
				problems = append(problems, fmt.Sprintf("%s: %s may change the storage; only bot/manage does", f.fset.Position(call.Pos()), method.Sel.Name))
			}
			return true
		})
	}
	return problems
}

// isPackage reports whether an expression is the name of an imported package.
func isPackage(f goFile, x ast.Expr) bool {
	name, ok := x.(*ast.Ident)
	return ok && slices.ContainsFunc(f.ast.Imports, func(spec *ast.ImportSpec) bool {
		return strings.HasSuffix(strings.Trim(spec.Path.Value, `"`), name.Name)
	})
}

// managersOf lists the parameters and fields of a file that are a manager.
func managersOf(f goFile) []string {
	names := []string{"manage"} // the field of a handler, and the package
	ast.Inspect(f.ast, func(n ast.Node) bool {
		field, ok := n.(*ast.Field)
		if !ok {
			return true
		}
		star, ok := field.Type.(*ast.StarExpr)
		if !ok {
			return true
		}
		if of, ok := star.X.(*ast.SelectorExpr); ok && of.Sel.Name == "Manager" {
			for _, name := range field.Names {
				names = append(names, name.Name)
			}
		}
		return true
	})
	return names
}

// isManager reports whether a receiver is one of the managers, by its last name.
func isManager(receiver ast.Expr, managers []string) bool {
	switch x := receiver.(type) {
	case *ast.Ident:
		return slices.Contains(managers, x.Name)
	case *ast.SelectorExpr:
		return slices.Contains(managers, x.Sel.Name)
	}
	return false
}
