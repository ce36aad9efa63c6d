package document

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Page is a page of a document, a slide, a part of a sheet, or about 3,000 characters of a text.
type Page struct {
	Number int    `json:"number"`          // from 1
	Title  string `json:"title,omitempty"` // the name of a sheet; empty for others
	Text   string `json:"text"`
}

// Reason is why a file can't be read.
type Reason string

// The reasons.
const (
	Unsupported Reason = "unsupported" // no kind that is read
	Legacy      Reason = "legacy"      // DOC, XLS or PPT
	Encrypted   Reason = "encrypted"   // with a password
	Broken      Reason = "broken"      // not what its first bytes say
	TooComplex  Reason = "too_complex" // it needs more memory or time than a file may take
	Empty       Reason = "empty"       // no text: scanned pages, or nothing
)

// Fault is a file that can't be read.
type Fault struct {
	Reason Reason
	Kind   Kind // empty: unknown
	Err    error
}

// Error names the reason and the cause.
func (f *Fault) Error() string {
	if f.Err == nil {
		return fmt.Sprintf("%s file: %s", f.Kind, f.Reason)
	}
	return fmt.Sprintf("%s file: %s: %v", f.Kind, f.Reason, f.Err)
}

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Err }

// Limits bound what one file may yield.
type Limits struct {
	Pages int   // further pages are left out
	Text  int   // bytes of all pages; further text is left out
	Unzip int64 // bytes of all parts of an archive
}

// DefaultLimits hold the text of a book of 2,000 pages.
var DefaultLimits = Limits{Pages: 2000, Text: 8 << 20, Unzip: 256 << 20}

// errFull ends the reading at a limit. It is no failure.
var errFull = errors.New("limit of pages reached")

// emit takes the pages of a document in order.
type emit func(title, text string) error

// Content is what a file holds besides its pages.
type Content struct {
	Kind    Kind
	Pages   int  // number in a document, with empty ones
	Cut     bool // a limit left pages or text out
	Picture *Scaled
}

// Read calls page for each page of a file of size bytes that has a text. It parses in this process: see [Sandbox].
func Read(in io.ReaderAt, size int64, limits Limits, page func(Page) error) (Content, error) {
	kind, err := Sniff(in, size)
	if err != nil {
		return Content{}, err
	}
	return readAs(kind, in, size, limits, page)
}

// readAs reads a file as one of a kind.
func readAs(kind Kind, in io.ReaderAt, size int64, limits Limits, page func(Page) error) (c Content, err error) {
	c.Kind = kind
	if kind == Picture {
		err = guarded(kind, func() (err error) { c.Picture, err = readPicture(in, size); return err })
		return c, err
	}
	number, left := 0, limits.Text
	put := func(title, text string) error {
		text = clean(text)
		if strings.TrimSpace(text) == "" {
			number++ // an empty page counts: people cite the numbers of pages
			return nil
		}
		if number >= limits.Pages || left <= 0 {
			return errFull
		}
		number++
		full := len(text) > left
		if full {
			text = head(text, left)
		}
		left -= len(text)
		if err := page(Page{Number: number, Title: title, Text: text}); err != nil {
			return err
		}
		if full {
			return errFull
		}
		return nil
	}
	err = guarded(kind, func() error { return parsers[kind](in, size, limits, put) })
	c.Pages, c.Cut = number, errors.Is(err, errFull)
	switch {
	case c.Cut:
		return c, nil
	case err != nil:
		return c, err
	case left == limits.Text:
		return c, &Fault{Reason: Empty, Kind: kind}
	}
	return c, nil
}

var parsers = map[Kind]func(in io.ReaderAt, size int64, limits Limits, put emit) error{
	Text: readText, PDF: readPDF, DOCX: readDOCX, XLSX: readXLSX, PPTX: readPPTX,
}

// guarded makes a panic of a parser a broken file.
func guarded(kind Kind, parse func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Fault{Reason: Broken, Kind: kind, Err: fmt.Errorf("parser: %v", p)}
		}
	}()
	err = parse()
	fault, classified := errors.AsType[*Fault](err)
	switch {
	case err == nil, errors.Is(err, errFull):
		return err
	case classified:
		fault.Kind = kind
		return fault
	}
	return &Fault{Reason: Broken, Kind: kind, Err: err}
}

// clean makes text storable: valid UTF-8 without control characters but tab and line feed.
func clean(text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' || r == 0x7f || r == 0xfeff {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "�"))
}

// head is the beginning of text, at most limit bytes.
func head(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}
