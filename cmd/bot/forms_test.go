package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The tour of package bot lists the forms of a message and of a reply. Each one is declared in its file, or filled there if it is generated
// or of another module.
func TestDocsListTheForms(t *testing.T) {
	t.Parallel()
	row := regexp.MustCompile(`(?m)^//\t(\w+)\.(\w+) +\S.*  +(\S+\.go)$`)
	rows := 0
	for _, f := range moduleFiles(t) {
		if f.path != "bot/doc.go" {
			continue
		}
		_, table, _ := strings.Cut(commentsOf(f), "# Forms")
		table, _, _ = strings.Cut(table, "\n// # ")
		for _, m := range row.FindAllStringSubmatch(table, -1) {
			rows++
			text, err := os.ReadFile(filepath.Join("..", "..", m[3]))
			if err != nil {
				t.Error(err)
				continue
			}
			if s := string(text); !strings.Contains(s, "type "+m[2]+" ") && !strings.Contains(s, m[1]+"."+m[2]) {
				t.Errorf("bot/doc.go: %s has no %s.%s", m[3], m[1], m[2])
			}
		}
	}
	if rows < 19 {
		t.Errorf("bot/doc.go lists %d forms", rows)
	}
}
