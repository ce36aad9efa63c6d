package bot_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// The parts of the bot get what they need: bot.go alone knows the whole and its configuration. So its files form no circle over it.
func TestPartsDoNotKnowTheBot(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	parts := 0
	for _, name := range files {
		if name == "bot.go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		parts++
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				_, ofPackage := s.X.(*ast.Ident)
				return !ofPackage // as in another package's Config
			}
			if id, ok := n.(*ast.Ident); ok && (id.Name == "Bot" || id.Name == "Config") {
				t.Errorf("%s uses %s", name, id.Name)
			}
			return true
		})
	}
	if parts < 10 {
		t.Errorf("%d files of parts", parts)
	}
}
