package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// properties is how many properties of compaction and flush are numbered. docs/compaction.md tells what each says.
const properties = 92

var (
	propertyRE     = regexp.MustCompile(`\bP(\d{1,2})\b`)
	propertyLineRE = regexp.MustCompile(`(?m)^\s*(?://|#)[^\n]*\bP\d{1,2}\b[^\n]*$`)
	propertyRowRE  = regexp.MustCompile(`(?m)^\| P(\d{1,2}) \| \S`)
)

// Every numbered property is held by a test that carries its number, and is told in the documentation.
func TestEveryPropertyIsHeld(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	held := map[int][]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(path, ".txtar") && !strings.Contains(path, "sessionstest") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, line := range propertyLineRE.FindAllString(string(text), -1) {
			for _, n := range propertyRE.FindAllStringSubmatch(line, -1) {
				i, err := strconv.Atoi(n[1])
				if err != nil || i < 1 || i > properties {
					return fmt.Errorf("%s: there is no property P%s", path, n[1])
				}
				held[i] = append(held[i], path)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile(filepath.Join(root, "docs", "compaction.md"))
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for _, m := range propertyRowRE.FindAllStringSubmatch(string(doc), -1) {
		told[m[1]] = true
	}
	for i := 1; i <= properties; i++ {
		if len(held[i]) == 0 {
			t.Errorf("no test carries P%d", i)
		}
		if !told[strconv.Itoa(i)] {
			t.Errorf("docs/compaction.md does not tell P%d", i)
		}
	}
}
