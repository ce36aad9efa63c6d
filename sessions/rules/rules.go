// Package rules reads regular expressions that judge text from data files. A rule has one example that it must match
// and one that it must not; package rulestest checks both.
//
// Each line is a rule: its list, further columns of the file's package, the two examples, the expression. Tabs
// separate columns; # begins a comment. In an expression a blank matches any number of blanks, none included, and \x20
// is one blank. The line "part", a name and an expression defines {name} for the rules below it.
package rules

import (
	"regexp"
	"strings"
	"sync"
)

// Rule is one expression of a list.
type Rule struct {
	List        string
	Columns     []string // between the list and the examples
	Match, Miss string   // the examples
	Expr        string
}

// File is the rules of a data file. File and expressions are read at their first use: a command line that needs no
// rule starts faster.
type File struct{ rules func() []Rule }

// Read returns the rules of lines. The text is linked in and tested, so a mistake panics at its use.
func Read(lines string) File {
	return File{sync.OnceValue(func() []Rule { return parse(lines) })}
}

func parse(lines string) []Rule {
	var rules []Rule
	var names []string // Each name of a part has its expression behind it.
	parts := strings.NewReplacer()
	for line := range strings.Lines(lines) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if f[0] == "part" {
			names = append(names, "{"+f[1]+"}", f[2])
			parts = strings.NewReplacer(names...)
			continue
		}
		n := len(f) - 3
		expr := strings.ReplaceAll(parts.Replace(f[n+2]), " ", `\s*`)
		rules = append(rules, Rule{List: f[0], Columns: f[1:n], Match: f[n], Miss: f[n+1], Expr: expr})
	}
	return rules
}

// All returns the rules in the order of their lines.
func (f File) All() []Rule { return f.rules() }

// Exprs returns the expressions of a list. A list without rules is a mistake and panics.
func (f File) Exprs(list string) []string {
	var all []string
	for _, r := range f.rules() {
		if r.List == list {
			all = append(all, r.Expr)
		}
	}
	if len(all) == 0 {
		panic("no rules in the list " + list)
	}
	return all
}

// Regexp returns an expression that matches any rule of a list, the first of several at the same place.
func (f File) Regexp(list string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(Union(f.Exprs(list))) })
}

// Each returns the expressions of a list in the order of their lines.
func (f File) Each(list string) func() []*regexp.Regexp {
	return sync.OnceValue(func() []*regexp.Regexp {
		var all []*regexp.Regexp
		for _, expr := range f.Exprs(list) {
			all = append(all, regexp.MustCompile(expr))
		}
		return all
	})
}

// Union joins expressions as alternatives. The flags of one do not reach the next.
func Union(exprs []string) string {
	if len(exprs) == 1 {
		return exprs[0]
	}
	return "(?:" + strings.Join(exprs, ")|(?:") + ")"
}
