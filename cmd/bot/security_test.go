package main

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each line of the threat model names a test that exists.
func TestSecurityPageNamesTests(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(moduleRoot, "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	if len(page) > 12_000 {
		t.Errorf("docs/security.md has %d bytes, want at most 12,000", len(page))
	}
	known := map[string]bool{}
	for _, f := range moduleFiles(t) {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && f.isTest() {
				known[fn.Name.Name] = true
			}
		}
	}
	name := regexp.MustCompile("\\| `([^`]+)` \\|$")
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| who") {
			continue
		}
		m := name.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			t.Errorf("no test is named by %q", line)
			continue
		}
		if _, err := os.Stat(filepath.Join("testdata", "script", m[1])); !known[m[1]] && err != nil {
			t.Errorf("there is no test %s", m[1])
		}
	}
}
