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

// optionalParts are the comparisons with nil of a field whose type is a port of ours or a function, by package and expression. All other parts
// are given: a constructor gets the part, or a value that does nothing, so that no user asks whether there is one.
var optionalParts = map[string]string{
	"bot b.cfg.CallBudget":          "files wait for calls where calls are counted",
	"bot a.robot":                   "a terminal has no bot that could write to administrators",
	"bot/command r.calls":           "/status has no row of calls where none are counted",
	"bot/command u.Denied":          "a table of data: most uses have the common answer",
	"bot/command u.Match":           "a table of data: most uses take each argument",
	"bot/console o.calls":           "the overview has no tile of calls where none are counted",
	"bot/console cfg.Identity":      "the constructor chooses the handlers of a login by DingTalk",
	"bot/dingtalk c.Serves":         "a check of credentials, and a test of one application, have no robots to tell apart",
	"bot/gate g.late":               "the gate is made before the worker that charges late answers",
	"bot/openai a.begins":           "a value of the call: a request that is not streamed has no reader of words",
	"bot/openai s.delta":            "a value of the call, see above",
	"bot/openai s.idea":             "a value of the call, see above",
	"bot/reload v.Serving":          "a terminal, and settings that a test makes, have no robots to tell apart",
	"bot/tools/mcp r.send":          "a value of the call: a turn that can send no files says so to the model",
	"bot/turn/answer q.live":        "a value of the turn: one that is not shown asks the model for no stream",
	"bot/turn/slot me.joined":       "a value of the turn: most are no suspects",
	"bot/turn/slot t.live":          "a value of the turn, see above",
	"bot/turn/slot w.leave":         "the display of a waiting turn, once it is shown",
	"bot/turn/slot w.looks":         "a place that a waiting turn has or has not yet",
	"bot/view o.Finder":             "a bot without a bound of tools needs no finder",
	"cmd/bot/gateway g.transport":   "the composition builds DingTalk's, unless the caller brings a terminal",
	"cmd/bot/gateway o.Transport":   "the choice of the caller, see above",
	"compaction/audit src.Count":    "a source without a budget counts nothing",
	"compaction/identify p.read":    "a table of data: most patterns have the common reader",
	"compaction/summarize t.Raw":    "a value of the task: a roll-up whose log is not readable",
	"memory/show r.Shown":           "a value of the rendering: few callers note what is shown",
	"sessions/periodic t.Leads":     "a value of the task: most run on each replica",
	"sessions/periodic t.Ready":     "a value of the task: most begin at once",
	"sql/erasure e.repeats":         "a value of the erasure: it looks for repetitions or not",
	"sql/pg o.Configure":            "the hook of tests that trace statements",
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
			t.Errorf("%s: a part is compared with nil in %s: give a value that does nothing", at, place)
		}
	}
	for place := range optionalParts {
		if !found[place] {
			t.Errorf("%s is not compared with nil any more: take it from the list", place)
		}
	}
}

// partProblems lists comparisons of ports and functions with nil, as place, tab, package and expression. It reads no types: a field counts by
// its name. A struct of the package has such a field, or for an exported name of a port, one of an imported package of ours.
func partProblems(files []goFile) (problems []string) {
	interfaces, fields := interfacesOf(files), map[string]map[string]string{}
	for _, f := range files {
		if f.isTest() || isTestPackage(f.pkg()) {
			continue
		}
		if fields[f.pkg()] == nil {
			fields[f.pkg()] = map[string]string{}
		}
		portFields(f, interfaces, fields[f.pkg()])
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
				if kind := fields[of][field.Sel.Name]; kind != "" && (of == f.pkg() || kind == "port" && field.Sel.IsExported()) {
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

// portFields adds the names of fields in a file that are parts, each with its kind: a port is an interface of ours, or one that the field
// declares.
func portFields(f goFile, interfaces map[string]bool, to map[string]string) {
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
			isPort, kind := false, "port"
			switch of := field.Type.(type) {
			case *ast.InterfaceType:
				isPort = len(of.Methods.List) > 0
			case *ast.FuncType:
				isPort, kind = true, "function"
			case *ast.Ident:
				isPort = interfaces[f.pkg()+"."+of.Name]
			case *ast.SelectorExpr:
				if from, ok := of.X.(*ast.Ident); ok {
					isPort = interfaces[packages[from.Name]+"."+of.Sel.Name]
				}
			}
			for _, name := range field.Names {
				if isPort {
					to[name.Name] = kind
				}
			}
		}
		return true
	})
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
		{"a function", `type a struct{ s func() }; func (x a) f() bool { return x.s == nil }`, "p x.s"},
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
