package document

import (
	"errors"
	"io"
	"strings"

	"github.com/xuri/excelize/v2"
)

// readXLSX makes pages of rows, each with the name of its sheet and the first row of it: a row alone says little.
func readXLSX(in io.ReaderAt, size int64, limits Limits, put emit) error {
	book, err := excelize.OpenReader(io.NewSectionReader(in, 0, size), excelize.Options{UnzipSizeLimit: limits.Unzip, UnzipXMLSizeLimit: min(limits.Unzip, 16<<20)})
	switch {
	case errors.Is(err, excelize.ErrWorkbookFileFormat):
		return &Fault{Reason: Broken, Err: err}
	case err != nil && strings.Contains(err.Error(), "unzip size exceeds"):
		return &Fault{Reason: TooComplex, Err: err}
	case err != nil:
		return err
	}
	defer func() { _ = book.Close() }()
	for _, name := range book.GetSheetList() {
		if err := readSheet(book, name, put); err != nil {
			return err
		}
	}
	return nil
}

// maxHeadRow bounds the first row where it is repeated, in bytes.
const maxHeadRow = pageText / 4

func readSheet(book *excelize.File, name string, put emit) error {
	rows, err := book.Rows(name)
	if err != nil {
		if _, isNone := errors.AsType[excelize.ErrSheetNotExist](err); isNone { // a sheet that is a chart
			return nil
		}
		return err
	}
	defer func() { _ = rows.Close() }()
	var page strings.Builder
	first := ""
	for rows.Next() {
		cells, err := rows.Columns()
		if err != nil {
			return err
		}
		line := strings.TrimRight(strings.Join(oneLines(cells), "\t"), "\t")
		if line == "" {
			continue
		}
		if first == "" {
			first = head(line, maxHeadRow)
		}
		if page.Len() > 0 && page.Len()+len(line) > pageText {
			if err := put(name, page.String()); err != nil {
				return err
			}
			page.Reset()
			page.WriteString(first + "\n")
		}
		page.WriteString(line + "\n")
	}
	if err := rows.Error(); err != nil {
		return err
	}
	if page.Len() == 0 {
		return nil
	}
	return put(name, page.String())
}

func oneLines(cells []string) []string {
	for i, c := range cells {
		cells[i] = strings.Join(strings.Fields(c), " ")
	}
	return cells
}
