package document

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

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
