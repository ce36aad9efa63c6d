package document

import (
	"errors"
	"fmt"
	"io"

	"github.com/ledongthuc/pdf"
)

// readPDF reads page by page. A page that breaks the parser is empty, unless all do.
func readPDF(in io.ReaderAt, size int64, limits Limits, put emit) error {
	doc, err := pdf.NewReader(in, size)
	switch {
	case errors.Is(err, pdf.ErrInvalidPassword):
		return &Fault{Reason: Encrypted, Err: err}
	case err != nil:
		return err
	}
	nodes := 0
	if !isTree(doc.Trailer().Key("Root").Key("Pages"), 0, &nodes) {
		return errors.New("the tree of pages has a circle")
	}
	var broken error
	good := 0
	for i := 1; i <= min(doc.NumPage(), limits.Pages+1); i++ {
		text, err := pageOf(doc, i)
		if err != nil {
			broken = err
		} else {
			good++
		}
		if err := put("", text); err != nil {
			return err
		}
	}
	if good == 0 && broken != nil {
		return broken
	}
	return nil
}

// Bounds of a tree of pages.
const (
	maxTreeDepth = 64
	maxTreeNodes = 10_000 // those that have children
)

// isTree reports whether a tree of pages ends: the parser descends in it without a bound.
func isTree(node pdf.Value, depth int, nodes *int) bool {
	if node.Key("Type").Name() != "Pages" {
		return true
	}
	if *nodes++; depth > maxTreeDepth || *nodes > maxTreeNodes {
		return false
	}
	kids := node.Key("Kids")
	for i := range kids.Len() {
		if !isTree(kids.Index(i), depth+1, nodes) {
			return false
		}
	}
	return true
}

// endsAbove reports whether the parents of a page end: the parser looks for its fonts there.
func endsAbove(page pdf.Value) bool {
	for range maxTreeDepth {
		if page = page.Key("Parent"); page.IsNull() {
			return true
		}
	}
	return false
}

func pageOf(doc *pdf.Reader, number int) (text string, err error) {
	defer func() {
		if p := recover(); p != nil {
			text, err = "", fmt.Errorf("page %d: %v", number, p)
		}
	}()
	page := doc.Page(number)
	if page.V.IsNull() {
		return "", fmt.Errorf("page %d is missing", number)
	}
	if !endsAbove(page.V) {
		return "", fmt.Errorf("page %d is above itself", number)
	}
	fonts := map[string]*pdf.Font{}
	for _, name := range page.Fonts() {
		font := page.Font(name)
		fonts[name] = &font
	}
	return page.GetPlainText(fonts)
}
