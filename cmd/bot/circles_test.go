package main

import (
	"go/ast"
	"go/build/constraint"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// fewArrows may lie in circles of any package: two files share the methods of a type, or a rule and its words.
const fewArrows = 5

// circularFiles are the packages with more such arrows, and their number, which may only shrink. In a package without circles a reader begins at
// the bottom and meets no name that is explained further up.
var circularFiles = map[string]int{
	"cmd/bot/gateway": 18,
	"sql/erasure":     21,
}

// TestFilesHaveNoCircles holds the order of files within a package. An arrow leads from a file to another whose declaration it uses.
func TestFilesHaveNoCircles(t *testing.T) {
	t.Parallel()
	found := circularArrows(moduleFiles(t))
	for _, pkg := range slices.Sorted(maps.Keys(found)) {
		if most := max(fewArrows, circularFiles[pkg]); len(found[pkg]) > most {
			t.Errorf("%s: %d arrows between files lie in circles, at most %d are allowed: give each declaration the file that owns it\n  %s",
				pkg, len(found[pkg]), most, strings.Join(found[pkg], "\n  "))
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(circularFiles)) {
		if most := circularFiles[pkg]; len(found[pkg]) < most {
			t.Errorf("%s: %d arrows between files lie in circles, the list allows %d: lower it", pkg, len(found[pkg]), most)
		}
	}
}

// circularArrows lists the arrows in circles by package, without equipment, generated files, and files of other systems. It reads no types: a use counts by its
// name. That of a method or a field counts where it is unexported, and one type of the package alone has the name.
func circularArrows(files []goFile) map[string][]string {
	byPackage := map[string][]goFile{}
	for _, f := range files {
		if f.isTest() || isEquipment(f.pkg()) || ast.IsGenerated(f.ast) || isForOthers(f) {
			continue
		}
		byPackage[f.pkg()] = append(byPackage[f.pkg()], f)
	}
	all := map[string][]string{}
	for pkg, files := range byPackage {
		if arrows := inCircles(arrowsOf(files)); len(arrows) > 0 {
			all[pkg] = arrows
		}
	}
	return all
}

// isForOthers reports a file with a constraint that Linux does not meet.
func isForOthers(f goFile) bool {
	for _, group := range f.ast.Comments {
		for _, c := range group.List {
			if expr, err := constraint.Parse(c.Text); err == nil && !expr.Eval(func(tag string) bool { return tag == "linux" || tag == "unix" }) {
				return true
			}
		}
	}
	return false
}

// fileNames has the names that the files of a package declare, each with its file.
type fileNames struct {
	top     map[string]string // functions, types, constants and variables
	members map[string]string // unexported methods and fields; "" where several types have the name
}

func namesOf(files []goFile) fileNames {
	names := fileNames{top: map[string]string{}, members: map[string]string{}}
	member := func(name, file string) {
		if _, twice := names.members[name]; twice || ast.IsExported(name) {
			file = ""
		}
		names.members[name] = file
	}
	for _, f := range files {
		file := path.Base(f.path)
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					member(d.Name.Name, file)
				} else {
					names.top[d.Name.Name] = file
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						names.top[spec.Name.Name] = file
					case *ast.ValueSpec:
						for _, name := range spec.Names {
							names.top[name.Name] = file
						}
					}
				}
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.StructType:
				for _, field := range n.Fields.List {
					for _, name := range field.Names {
						member(name.Name, file)
					}
				}
			case *ast.InterfaceType:
				for _, method := range n.Methods.List {
					for _, name := range method.Names {
						member(name.Name, "")
					}
				}
			}
			return true
		})
	}
	return names
}

// arrowsOf are the files that each file uses.
func arrowsOf(files []goFile) map[string]map[string]bool {
	names := namesOf(files)
	arrows := map[string]map[string]bool{}
	for _, f := range files {
		from := path.Base(f.path)
		arrows[from] = map[string]bool{}
		use := func(to string) {
			if to != "" && to != from {
				arrows[from][to] = true
			}
		}
		for _, d := range f.ast.Decls {
			usesOf(d, names, use)
		}
	}
	return arrows
}

// usesOf gives the file of each name that a declaration uses. A name that the declaration has for a parameter or a variable counts as that.
func usesOf(d ast.Decl, names fileNames, use func(file string)) {
	local, selected := localNames(d), map[*ast.Ident]bool{}
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			selected[n.Sel] = true
			use(names.members[n.Sel.Name])
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok {
				if file, isMember := names.members[key.Name]; isMember { // or the key of a map, which counts where no field has its name
					selected[key] = true
					if names.top[key.Name] == "" {
						use(file)
					}
				}
			}
		case *ast.Ident:
			if n.Name != "_" && !selected[n] && !local[n.Name] {
				use(names.top[n.Name])
			}
		}
		return true
	})
}

// localNames are the parameters, results, fields and variables within a declaration.
func localNames(d ast.Decl) map[string]bool {
	local := map[string]bool{}
	add := func(names ...*ast.Ident) {
		for _, name := range names {
			local[name.Name] = true
		}
	}
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			add(n.Names...)
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				if name, ok := left.(*ast.Ident); ok && n.Tok == token.DEFINE {
					add(name)
				}
			}
		case *ast.RangeStmt:
			for _, left := range []ast.Expr{n.Key, n.Value} {
				if name, ok := left.(*ast.Ident); ok && n.Tok == token.DEFINE {
					add(name)
				}
			}
		case *ast.DeclStmt:
			for _, spec := range n.Decl.(*ast.GenDecl).Specs {
				if spec, ok := spec.(*ast.ValueSpec); ok {
					add(spec.Names...)
				}
			}
		}
		return true
	})
	return local
}

// inCircles lists the arrows whose end leads back to their start, in order.
func inCircles(arrows map[string]map[string]bool) (circular []string) {
	reached := map[string]map[string]bool{}
	for from := range arrows {
		seen, open := map[string]bool{}, []string{from}
		for len(open) > 0 {
			next := open[len(open)-1]
			open = open[:len(open)-1]
			for to := range arrows[next] {
				if !seen[to] {
					seen[to] = true
					open = append(open, to)
				}
			}
		}
		reached[from] = seen
	}
	for from, ends := range arrows {
		for to := range ends {
			if reached[to][from] {
				circular = append(circular, from+" -> "+to)
			}
		}
	}
	slices.Sort(circular)
	return circular
}

func TestCirclesAreFound(t *testing.T) {
	t.Parallel()
	file := func(name, text string) goFile { return parseGoFile(t, "p/"+name, []byte("package p\n"+text)) }
	for _, c := range []struct {
		why   string
		files []goFile
		want  []string
	}{
		{"a function and its caller", []goFile{file("a.go", "func a() { b() }"), file("b.go", "func b() {}")}, nil},
		{"two functions", []goFile{file("a.go", "func a() { b() }"), file("b.go", "func b() { a() }")}, []string{"a.go -> b.go", "b.go -> a.go"}},
		{"a type and its method", []goFile{file("a.go", "type a struct{ n int }\nfunc (x a) one() { x.two() }"), file("b.go", "func (x a) two() {}")},
			[]string{"a.go -> b.go", "b.go -> a.go"}},
		{"a field", []goFile{file("a.go", "type a struct{ n int }\nvar _ = b"), file("b.go", "func b(x struct{}) { _ = x.n }")}, []string{"a.go -> b.go", "b.go -> a.go"}},
		{"three files", []goFile{file("a.go", "const a = b"), file("b.go", "const b = c"), file("c.go", "type t [a]int\nconst c = 1"), file("d.go", "var d t")},
			[]string{"a.go -> b.go", "b.go -> c.go", "c.go -> a.go"}},
		{"a parameter of the same name", []goFile{file("a.go", "func a(b int) int { return b }"), file("b.go", "func b() { a(1) }")}, nil},
		{"a method that two types have", []goFile{file("a.go", "type a int\nfunc (a) do() {}\nvar _ = b(1)"), file("b.go", "type b int\nfunc (b) do() {}\nfunc run(x interface{ do() }) { x.do() }")}, nil},
		{"a test", []goFile{file("a.go", "func a() { b() }"), file("b.go", "func b() {}"), file("b_test.go", "func c() { a() }")}, nil},
		{"another system", []goFile{file("a.go", "func a() { b() }"), parseGoFile(t, "p/b.go", []byte("//go:build !linux\n\npackage p\nfunc b() { a() }"))}, nil},
	} {
		if got := circularArrows(c.files)["p"]; !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.why, got, c.want)
		}
	}
}
