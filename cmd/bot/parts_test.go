package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"strconv"
	"strings"
	"testing"
)

// optionalParts are the comparisons with nil of a field whose type is a port of ours, by package and expression. All other ports are given: a
// constructor gets the part, or a value that does nothing, so that no user asks whether there is one.
var optionalParts = map[string]string{
	"bot b.cfg.Media":               "a terminal has no files: the composition of a turn names them, and /keep says that none are kept",
	"bot b.cfg.Kept":                "without them there is no desk of kept files, see above",
	"bot cfg.Files":                 "the composition of commands: without files of replies /export comes as text",
	"bot/tools g.from.Kept":         "a store without kept files has no paths of them",
	"bot/console cfg.Identity":      "the constructor chooses the handlers of a login by DingTalk",
	"bot/turn/answer q.live":        "a value of the turn: one that is not shown asks the model for no stream",
	"bot/turn/slot t.live":          "a value of the turn, see above",
	"bot/outbox o.sender.files":     "the files of replies: a transport without uploads sends none",
	"bot/outbox s.files":            "the files of replies, see above",
	"bot/turn/answer t.files":       "without them no tool can send a file, and tools say so",
	"cmd/bot/gateway g.login":       "the composition gives a console without a login by DingTalk no rights",
	"cmd/bot/gateway g.transport":   "the composition builds DingTalk's, unless the caller brings a terminal",
	"cmd/bot/gateway o.Transport":   "the choice of the caller, see above",
	"sql/search s.meaning.embedder": "a store without an endpoint starts no search by meaning beside the words",
}

// Ports are given, by values that do nothing where a feature is off. A comparison with nil in a user of the part would be forgotten in the next one.
func TestTreeAsksForNoParts(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for _, p := range partProblems(moduleFiles(t)) {
		_, place, _ := strings.Cut(p, "\t")
		found[place] = true
		if optionalParts[place] == "" {
			at, _, _ := strings.Cut(p, "\t")
			t.Errorf("%s: a port is compared with nil in %s: give a value that does nothing", at, place)
		}
	}
	for place := range optionalParts {
		if !found[place] {
			t.Errorf("%s is not compared with nil any more: take it from the list", place)
		}
	}
}

// partProblems lists comparisons of ports with nil, as place, tab, package and expression. It reads no types: a field counts by its name.
// A struct of the package, or for an exported name of an imported one of ours, has such a field of an interface of ours.
func partProblems(files []goFile) (problems []string) {
	interfaces, fields := interfacesOf(files), map[string]map[string]bool{}
	for _, f := range files {
		if f.isTest() || isTestPackage(f.pkg()) {
			continue
		}
		if fields[f.pkg()] == nil {
			fields[f.pkg()] = map[string]bool{}
		}
		for _, name := range portFields(f, interfaces) {
			fields[f.pkg()][name] = true
		}
	}
	for _, f := range files {
		if f.isTest() || isTestPackage(f.pkg()) || strings.HasPrefix(f.path, "cmd/lab/") {
			continue
		}
		seen := append([]string{f.pkg()}, importsOf(f)...)
		ast.Inspect(f.ast, func(n ast.Node) bool {
			b, ok := n.(*ast.BinaryExpr)
			if !ok || b.Op != token.EQL && b.Op != token.NEQ || !isNil(b.Y) {
				return true
			}
			field, ok := b.X.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			for _, of := range seen {
				if fields[of][field.Sel.Name] && (of == f.pkg() || field.Sel.IsExported()) {
					problems = append(problems, fmt.Sprintf("%s:%d\t%s %s", f.path, f.fset.Position(b.Pos()).Line, f.pkg(), exprText(field)))
					break
				}
			}
			return true
		})
	}
	return problems
}

// interfacesOf are the interfaces of the module, as package and name.
func interfacesOf(files []goFile) map[string]bool {
	all := map[string]bool{}
	for _, f := range files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if s, ok := n.(*ast.TypeSpec); ok {
				if _, ok := s.Type.(*ast.InterfaceType); ok {
					all[f.pkg()+"."+s.Name.Name] = true
				}
			}
			return true
		})
	}
	return all
}

// portFields are the names of fields in a file whose type is an interface of ours, or one that the field declares.
func portFields(f goFile, interfaces map[string]bool) (names []string) {
	packages := map[string]string{}
	for _, of := range importsOf(f) {
		packages[path.Base(of)] = of
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		s, ok := n.(*ast.StructType)
		if !ok {
			return true
		}
		for _, field := range s.Fields.List {
			isPort := false
			switch of := field.Type.(type) {
			case *ast.InterfaceType:
				isPort = len(of.Methods.List) > 0
			case *ast.Ident:
				isPort = interfaces[f.pkg()+"."+of.Name]
			case *ast.SelectorExpr:
				if from, ok := of.X.(*ast.Ident); ok {
					isPort = interfaces[packages[from.Name]+"."+of.Sel.Name]
				}
			}
			for _, name := range field.Names {
				if isPort {
					names = append(names, name.Name)
				}
			}
		}
		return true
	})
	return names
}

// importsOf are the packages of ours that a file imports, from the root of the module.
func importsOf(f goFile) (all []string) {
	for _, s := range f.ast.Imports {
		name, err := strconv.Unquote(s.Path.Value)
		if of, ours := strings.CutPrefix(name, modulePath+"/"); err == nil && ours {
			all = append(all, of)
		}
	}
	return all
}

func isNil(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "nil"
}

// exprText is an expression of names, as in cfg.Identity.
func exprText(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return exprText(e.X) + "." + e.Sel.Name
	}
	return "…"
}

func TestPartProblems(t *testing.T) {
	t.Parallel()
	port := parseGoFile(t, "p/port/a.go", []byte("package port\n\ntype Store interface{ Get() }\n\ntype Config struct{ Store Store }\n"))
	for _, tt := range []struct{ name, src, want string }{
		{"a part of the package", `type a struct{ s port.Store }; func (x a) f() bool { return x.s != nil }`, "p x.s"},
		{"a part of an imported package", `func f(c port.Config) bool { return nil != c.Store || c.Store == nil }`, "p c.Store"},
		{"one that its field declares", `type a struct{ s interface{ Get() } }; func (x a) f() bool { return x.s == nil }`, "p x.s"},
		{"another type", `type a struct{ s *port.Config }; func (x a) f() bool { return x.s != nil }`, ""},
		{"any value", `type a struct{ s interface{} }; func (x a) f() bool { return x.s != nil }`, ""},
		{"a local value", `func f(s port.Store) bool { return s != nil }`, ""},
	} {
		file := parseGoFile(t, "p/b.go", []byte("package p\n\nimport \"ebb/p/port\"\n\n"+strings.ReplaceAll(tt.src, "; ", "\n\n")+"\n"))
		got := strings.Join(partProblems([]goFile{port, file}), "\n")
		if _, place, _ := strings.Cut(got, "\t"); place != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, place, tt.want)
		}
	}
}
