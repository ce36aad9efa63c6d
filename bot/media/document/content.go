package document

import (
	"errors"
	"fmt"
)

// Kind is a kind of file that is read.
type Kind string

// The kinds. Markdown, CSV and JSON are texts.
const (
	Text Kind = "text"
	PDF  Kind = "pdf"
	DOCX Kind = "docx"
	XLSX Kind = "xlsx"
	PPTX Kind = "pptx"
)

// Picture is the kind of a picture, which is no document: it has no pages.
const Picture Kind = "picture"

// Scaled is a picture for a model.
type Scaled struct {
	Type          string `json:"type"` // image/png or image/jpeg
	Width, Height int
	Body          []byte `json:"body"`
}

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

// sniffed is the part of a file that its kind is read from, in bytes.
const sniffed = 64 << 10
