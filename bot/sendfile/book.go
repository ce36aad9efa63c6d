package sendfile

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/xuri/excelize/v2"

	"ebb/sessions"
)

// Sheet is a sheet of a workbook. The first row is its head.
type Sheet struct {
	Name string
	Rows [][]string
}

// The bounds of a workbook. A longer cell goes on in a row of its own.
const (
	maxCell  = 32000 // characters
	maxRows  = 200_000
	maxSheet = 31 // characters of a name
)

// Book makes a workbook. No cell is a formula: words that begin as one stay words. Short numbers are numbers.
func Book(name string, sheets []Sheet) (sessions.File, error) {
	book := excelize.NewFile()
	defer func() { _ = book.Close() }()
	for i, s := range sheets {
		title := sheetName(s.Name, i)
		if err := addSheet(book, title, i); err != nil {
			return sessions.File{}, err
		}
		if err := writeRows(book, title, s.Rows); err != nil {
			return sessions.File{}, err
		}
	}
	b, err := book.WriteToBuffer()
	if err != nil {
		return sessions.File{}, fmt.Errorf("writing a workbook: %w", err)
	}
	if b.Len() > sessions.MaxFile {
		return sessions.File{}, ErrTooLarge
	}
	return sessions.File{Name: SafeName(name+".xlsx", "xlsx"), Kind: sessions.FilePlain, Body: b.Bytes()}, nil
}

func addSheet(book *excelize.File, title string, n int) error {
	if n == 0 {
		if err := book.SetSheetName("Sheet1", title); err != nil {
			return fmt.Errorf("naming a sheet: %w", err)
		}
		return nil
	}
	if _, err := book.NewSheet(title); err != nil {
		return fmt.Errorf("adding a sheet: %w", err)
	}
	return nil
}

func writeRows(book *excelize.File, title string, rows [][]string) error {
	w, err := book.NewStreamWriter(title)
	if err != nil {
		return fmt.Errorf("writing a sheet: %w", err)
	}
	n := 0
	for _, row := range rows {
		for more := true; more; n++ {
			if n == maxRows {
				return ErrTooLarge
			}
			var cells []any
			cells, row, more = cellsOf(row)
			if err := w.SetRow("A"+strconv.Itoa(n+1), cells); err != nil {
				return fmt.Errorf("writing a row: %w", err)
			}
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing a sheet: %w", err)
	}
	return nil
}

// cellsOf are the cells of a row. rest has the ends of those that are too long.
func cellsOf(row []string) (cells []any, rest []string, more bool) {
	rest = make([]string, len(row))
	for i, text := range row {
		text = strings.Map(printable, strings.ToValidUTF8(text, ""))
		if utf8.RuneCountInString(text) > maxCell {
			runes := []rune(text)
			text, rest[i], more = string(runes[:maxCell]), string(runes[maxCell:]), true
		}
		cells = append(cells, valueOf(text))
	}
	return cells, rest, more
}

// printable drops what XML can't hold.
func printable(r rune) rune {
	if r < ' ' && r != '\t' && r != '\n' || r == 0xfffe || r == 0xffff {
		return -1
	}
	return r
}

// number has no sign, and no more digits than a spreadsheet shows: an id stays as it is.
var number = regexp.MustCompile(`^(?:0|[1-9]\d{0,9})(?:\.\d{1,6})?$`)

func valueOf(text string) any {
	if number.MatchString(text) {
		if v, err := strconv.ParseFloat(text, 64); err == nil {
			return v
		}
	}
	return text
}

func sheetName(name string, n int) string {
	name = strings.TrimSpace(strings.Map(func(r rune) rune {
		if strings.ContainsRune(`:\/?*[]'`, r) || r < ' ' {
			return -1
		}
		return r
	}, name))
	if runes := []rune(name); len(runes) > maxSheet {
		name = strings.TrimSpace(string(runes[:maxSheet]))
	}
	if name == "" {
		name = "Sheet" + strconv.Itoa(n+1)
	}
	return name
}
