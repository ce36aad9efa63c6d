package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables that tests keep: docs/properties.md, testdata/language.txt")

const (
	// properties is the number of numbered properties of compaction and flush.
	properties     = 94
	propertiesPage = moduleRoot + "/docs/properties.md"
)

var (
	propertyRE    = regexp.MustCompile(`\bP(\d{1,2})\b`)
	propertyRowRE = regexp.MustCompile(`(?m)^\| P(\d{1,2}) \| ([^|]+) \| ([^|]*) \|$`)
)

// Every numbered property is held by a test that carries its number, and the page lists each with these tests.
// "go test ./cmd/bot -run TestEveryPropertyIsHeld -update" writes the column of tests.
func TestEveryPropertyIsHeld(t *testing.T) {
	t.Parallel()
	held := propertyTests(t)
	page, err := os.ReadFile(propertiesPage)
	if err != nil {
		t.Fatal(err)
	}
	listed := map[int]bool{}
	want := propertyRowRE.ReplaceAllFunc(page, func(row []byte) []byte {
		m := propertyRowRE.FindSubmatch(row)
		n, err := strconv.Atoi(string(m[1]))
		if err != nil {
			t.Error(err)
		}
		listed[n] = true
		return fmt.Appendf(nil, "| P%d | %s | `%s` |", n, m[2], strings.Join(held[n], "`, `"))
	})
	for n := range held {
		if n < 1 || n > properties {
			t.Errorf("%s carry P%d, and there is no such property", held[n], n)
		}
	}
	for n := 1; n <= properties; n++ {
		if len(held[n]) == 0 {
			t.Errorf("no test carries P%d", n)
		}
		if !listed[n] {
			t.Errorf("%s does not list P%d", propertiesPage, n)
		}
	}
	switch {
	case bytes.Equal(page, want):
	case *update:
		if err := os.WriteFile(propertiesPage, want, 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s names other tests than those that carry the numbers: run go test ./cmd/bot -run %s -update", propertiesPage, t.Name())
	}
}

// propertyTests maps a property to the names of the tests that carry its number, sorted. Names of tests survive moves
// between packages; paths do not.
func propertyTests(t *testing.T) map[int][]string {
	t.Helper()
	held := map[int][]string{}
	carry := func(text, name string) {
		for _, m := range propertyRE.FindAllStringSubmatch(text, -1) {
			n, err := strconv.Atoi(m[1])
			if err != nil {
				t.Error(err)
			}
			if !slices.Contains(held[n], name) {
				held[n] = append(held[n], name)
			}
		}
	}
	for _, f := range moduleFiles(t) {
		if !f.isTest() && !isTestPackage(f.pkg()) {
			continue
		}
		for _, group := range f.ast.Comments {
			if text := group.Text(); propertyRE.MatchString(text) {
				carry(text, funcAfter(f, group))
			}
		}
	}
	for _, dir := range []string{"script", "long"} {
		scripts := filepath.Join("testdata", dir)
		err := fs.WalkDir(os.DirFS(scripts), ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(filepath.Join(scripts, path))
			for line := range strings.Lines(string(text)) {
				if strings.HasPrefix(line, "#") {
					carry(line, path)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, names := range held {
		slices.Sort(names)
	}
	return held
}

// funcAfter is the name of the function that a comment documents or stands in.
func funcAfter(f goFile, comment *ast.CommentGroup) string {
	for _, decl := range f.ast.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.End() > comment.Pos() {
			return fn.Name.Name
		}
	}
	return f.path
}
