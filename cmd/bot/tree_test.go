package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// modulePath is the name that go.mod gives; imports that begin with it are ours.
const modulePath = "ebb"

// moduleRoot is where go.mod is, seen from this package.
const moduleRoot = "../.."

// goFile is one parsed file of the module.
type goFile struct {
	path  string // from the root of the module, with slashes
	fset  *token.FileSet
	ast   *ast.File
	lines int
}

// pkg is the folder of the file from the root of the module, as in bot/dingtalk.
func (f goFile) pkg() string { return path.Dir(f.path) }

func (f goFile) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// parseGo parses one file; src is its text.
func parseGo(name string, src []byte) (goFile, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	lines := bytes.Count(src, []byte("\n"))
	if len(src) > 0 && src[len(src)-1] != '\n' {
		lines++
	}
	return goFile{path: name, fset: fset, ast: file, lines: lines}, err
}

func parseGoFile(t *testing.T, name string, src []byte) goFile {
	t.Helper()
	file, err := parseGo(name, src)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// moduleFiles are the parsed Go files of the module. The tests share them.
func moduleFiles(t *testing.T) []goFile {
	t.Helper()
	files, err := parseModule()
	if err != nil {
		t.Fatalf("walking the module: %v", err)
	}
	if len(files) < 10 {
		t.Fatalf("found %d Go files in the module: this test looks in the wrong place", len(files))
	}
	return files
}

var parseModule = sync.OnceValues(func() ([]goFile, error) {
	var files []goFile
	err := filepath.WalkDir(moduleRoot, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != moduleRoot && skipFolder(d.Name()):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(moduleRoot, name)
		if err != nil {
			return err
		}
		file, err := parseGo(filepath.ToSlash(rel), src)
		files = append(files, file)
		return err
	})
	return files, err
})

// skipFolder names what holds no source of ours: a private database's files may not even be readable.
func skipFolder(name string) bool {
	return strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules" || name == "data" || name == "bin"
}
