package sendfile

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/xuri/excelize/v2"
)

// Sheet is a sheet of a workbook. The first row is its head.
type Sheet struct {
	Name string
	Rows [][]string
}

// The bounds of a workbook. A longer cell goes on in a row of its own. A spreadsheet counts UTF-16 units, and its own bounds are 32,767 of
// them in a cell and 1,048,576 rows in a sheet.
const (
	maxCell  = 32_000
	maxRows  = 200_000
	maxSheet = 31 // units of a name
)

// Book returns the bytes of a workbook. No cell is a formula: words that begin as one stay words. Short numbers are numbers, shown with the
// decimals that they were written with.
func Book(sheets []Sheet) ([]byte, error) {
	book := excelize.NewFile()
	defer func() { _ = book.Close() }()
	w := bookWriter{book: book, styles: map[int]int{}}
	used := map[string]bool{}
	for i, s := range sheets {
		title := sheetName(s.Name, i, used)
		if err := w.addSheet(title, i); err != nil {
			return nil, err
		}
		if err := w.writeRows(title, s.Rows); err != nil {
			return nil, err
		}
	}
	b, err := book.WriteToBuffer()
	if err != nil {
		return nil, fmt.Errorf("writing a workbook: %w", err)
	}
	return b.Bytes(), nil
}

type bookWriter struct {
	book   *excelize.File
	styles map[int]int // styles of numbers, by their decimals
}

func (w bookWriter) addSheet(title string, n int) error {
	if n == 0 {
		if err := w.book.SetSheetName("Sheet1", title); err != nil {
			return fmt.Errorf("naming a sheet: %w", err)
		}
		return nil
	}
	if _, err := w.book.NewSheet(title); err != nil {
		return fmt.Errorf("adding a sheet: %w", err)
	}
	return nil
}

func (w bookWriter) writeRows(title string, rows [][]string) error {
	to, err := w.book.NewStreamWriter(title)
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
			if cells, row, more, err = w.cellsOf(row); err == nil {
				err = to.SetRow("A"+strconv.Itoa(n+1), cells)
			}
			if err != nil {
				return fmt.Errorf("writing a row: %w", err)
			}
		}
	}
	if err := to.Flush(); err != nil {
		return fmt.Errorf("writing a sheet: %w", err)
	}
	return nil
}

// cellsOf are the cells of a row. rest has the ends of those that are too long.
func (w bookWriter) cellsOf(row []string) (cells []any, rest []string, more bool, err error) {
	rest = make([]string, len(row))
	for i, text := range row {
		text, rest[i] = splitUnits(strings.Map(printable, strings.ToValidUTF8(text, "")), maxCell)
		more = more || rest[i] != ""
		cell, err := w.valueOf(text)
		if err != nil {
			return nil, nil, false, err
		}
		cells = append(cells, cell)
	}
	return cells, rest, more, nil
}

// splitUnits splits a text behind at most a number of UTF-16 units, between two characters.
func splitUnits(text string, most int) (head, rest string) {
	n := 0
	for i, r := range text {
		if n += utf16.RuneLen(r); n > most {
			return text[:i], text[i:]
		}
	}
	return text, ""
}

// printable drops what XML can't hold.
func printable(r rune) rune {
	if r < ' ' && r != '\t' && r != '\n' || r == 0xfffe || r == 0xffff {
		return -1
	}
	return r
}

// number has no sign, and no more digits than a spreadsheet keeps: an id stays as it is.
var number = regexp.MustCompile(`^(?:0|[1-9]\d{0,9})(?:\.(\d{1,5}))?$`)

func (w bookWriter) valueOf(text string) (any, error) {
	m := number.FindStringSubmatch(text)
	if m == nil {
		return text, nil
	}
	v, err := strconv.ParseFloat(text, 64)
	decimals := len(m[1])
	if err != nil || decimals == 0 {
		return v, err
	}
	style, ok := w.styles[decimals]
	if !ok {
		form := "0." + strings.Repeat("0", decimals)
		if style, err = w.book.NewStyle(&excelize.Style{CustomNumFmt: &form}); err != nil {
			return nil, err
		}
		w.styles[decimals] = style
	}
	return excelize.Cell{StyleID: style, Value: v}, nil
}

// sheetName makes a name that spreadsheets accept, and that no earlier sheet has. They take "History" for themselves.
func sheetName(name string, n int, used map[string]bool) string {
	name = strings.Map(func(r rune) rune {
		if strings.ContainsRune(`:\/?*[]'`, r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || printable(r) < 0 {
			return -1
		}
		return r
	}, strings.ToValidUTF8(name, ""))
	name, _ = splitUnits(strings.TrimSpace(name), maxSheet)
	name = strings.TrimSpace(name)
	for key := strings.ToLower(name); key == "" || key == "history" || used[key]; key = strings.ToLower(name) {
		n++
		name = "Sheet" + strconv.Itoa(n)
	}
	used[strings.ToLower(name)] = true
	return name
}
