package document

import (
	"archive/zip"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
)

const docxPart = "word/document.xml"

// open returns a part of an archive. Reading more than the limit is a [Fault]: a file of some kilobytes can hold terabytes of zeros.
func open(in io.ReaderAt, size int64, limits Limits, part string) (io.Reader, func(), error) {
	z, err := zip.NewReader(in, size)
	if err != nil {
		return nil, nil, err
	}
	f, err := z.Open(part)
	if err != nil {
		return nil, nil, err
	}
	return &bounded{f, limits.Unzip}, func() { _ = f.Close() }, nil
}

type bounded struct {
	io.Reader
	left int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n, &Fault{Reason: TooComplex, Err: errors.New("a part of the archive is too large")}
	}
	return n, err
}

// maxDepth bounds nested elements. Real files have some 40.
const maxDepth = 1000

// words calls begin and end for each element by its local name, and said for its text.
func words(r io.Reader, begin func(e xml.StartElement) error, end func(name string) error, said func(text []byte) error) error {
	d := xml.NewDecoder(r)
	d.Strict = false
	d.Entity = map[string]string{} // no entity of the document's own
	for depth := 0; ; {
		token, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch token := token.(type) {
		case xml.StartElement:
			if depth++; depth > maxDepth {
				return &Fault{Reason: TooComplex, Err: errors.New("too many nested elements")}
			}
			err = begin(token)
		case xml.EndElement:
			depth--
			err = end(token.Name.Local)
		case xml.CharData:
			err = said(token)
		}
		if err != nil {
			return err
		}
	}
}

// readDOCX makes pages at the breaks that Word saw last, or that its author set; a file without any is cut like a text.
func readDOCX(in io.ReaderAt, size int64, limits Limits, put emit) error {
	r, done, err := open(in, size, limits, docxPart)
	if err != nil {
		return err
	}
	defer done()
	w := writer{put: put}
	inText := false
	begin := func(e xml.StartElement) error {
		switch e.Name.Local {
		case "t":
			inText = true
		case "tab":
			w.add("\t")
		case "lastRenderedPageBreak":
			return w.turn()
		case "br":
			if slices.ContainsFunc(e.Attr, func(a xml.Attr) bool { return a.Name.Local == "type" && a.Value == "page" }) {
				return w.turn()
			}
			w.add("\n")
		}
		return nil
	}
	end := func(name string) error {
		switch name {
		case "t":
			inText = false
		case "tc":
			w.add(" | ")
		case "p", "tr":
			w.add("\n")
			return w.overflow()
		}
		return nil
	}
	if err := words(r, begin, end, func(text []byte) error {
		if inText {
			w.add(string(text))
		}
		return nil
	}); err != nil {
		return err
	}
	return w.turn()
}

// maxPage bounds a page without breaks, in bytes.
const maxPage = 4 * pageText

// writer collects the text of a page.
type writer struct {
	put  emit
	page strings.Builder
}

func (w *writer) add(text string) { w.page.WriteString(text) }

// turn ends a page. A break before the first word ends none.
func (w *writer) turn() error {
	text := w.page.String()
	if strings.TrimSpace(text) == "" {
		return nil
	}
	w.page.Reset()
	return w.put("", text)
}

func (w *writer) overflow() error {
	if w.page.Len() > maxPage {
		return w.turn()
	}
	return nil
}

// readPPTX makes a page of each slide, in the order of their numbers.
func readPPTX(in io.ReaderAt, size int64, limits Limits, put emit) error {
	z, err := zip.NewReader(in, size)
	if err != nil {
		return err
	}
	var slides []int
	for _, f := range z.File {
		name, ok := strings.CutPrefix(f.Name, "ppt/slides/slide")
		number, err := strconv.Atoi(strings.TrimSuffix(name, path.Ext(name)))
		if ok && err == nil && path.Ext(name) == ".xml" {
			slides = append(slides, number)
		}
	}
	slices.Sort(slides)
	left := limits
	for _, number := range slides {
		text, err := slide(in, size, left, number)
		if err != nil {
			return err
		}
		left.Unzip -= int64(len(text))
		if err := put("", text); err != nil {
			return err
		}
	}
	return nil
}

func slide(in io.ReaderAt, size int64, limits Limits, number int) (string, error) {
	r, done, err := open(in, size, limits, fmt.Sprintf("ppt/slides/slide%d.xml", number))
	if err != nil {
		return "", err
	}
	defer done()
	var page strings.Builder
	inText := false
	err = words(r, func(e xml.StartElement) error {
		inText = inText || e.Name.Local == "t"
		return nil
	}, func(name string) error {
		switch name {
		case "t":
			inText = false
		case "p":
			page.WriteString("\n")
		}
		if page.Len() > limits.Text {
			return errFull
		}
		return nil
	}, func(text []byte) error {
		if inText {
			page.Write(text)
		}
		return nil
	})
	if errors.Is(err, errFull) {
		err = nil
	}
	return page.String(), err
}
