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
	fonts := map[string]*pdf.Font{}
	for _, name := range page.Fonts() {
		font := page.Font(name)
		fonts[name] = &font
	}
	return page.GetPlainText(fonts)
}
