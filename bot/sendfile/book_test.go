package sendfile

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"
	"pgregory.net/rapid"
)

func opened(t *testing.T, body []byte) *excelize.File {
	t.Helper()
	book, err := excelize.OpenReader(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = book.Close() })
	return book
}

// No cell is a formula. Words that begin as one, long numbers and those with zeros before them stay as they were written.
func TestCellsAreNoFormulas(t *testing.T) {
	t.Parallel()
	row := []string{"=1+1", "+8613800000000", "-5", "@SUM(A1)", "=HYPERLINK(\"http://evil\",\"点\")", "\t=1", "007", "13800000000123", "42.5", "a\x01b\xff", "_x0041_", " b ", ""}
	body, err := Book([]Sheet{{Name: "很[长]的/名字" + strings.Repeat("长", 40), Rows: [][]string{{"a"}, row}}, {Rows: [][]string{{strings.Repeat("字", maxCell+1), "b"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if judged, err := judge("../报表.xlsx", body); err != nil || judged.Name != "报表.xlsx" {
		t.Errorf("the workbook is judged as %q, %v", judged.Name, err)
	}
	book := opened(t, body)
	name := book.GetSheetList()[0]
	for i := range row {
		at, _ := excelize.CoordinatesToCellName(i+1, 2)
		if formula, err := book.GetCellFormula(name, at); formula != "" || err != nil {
			t.Errorf("%s is the formula %q, %v", at, formula, err)
		}
		kind, err := book.GetCellType(name, at)
		if err != nil || (kind == excelize.CellTypeUnset || kind == excelize.CellTypeNumber) && row[i] != "42.5" && row[i] != "" {
			t.Errorf("%s, %q, is of type %d, %v", at, row[i], kind, err)
		}
	}
	rows, err := book.GetRows(name)
	if want := []string{"=1+1", "+8613800000000", "-5", "@SUM(A1)", row[4], "\t=1", "007", "13800000000123", "42.5", "ab", "_x0041_", " b "}; err != nil || !slices.Equal(rows[1], want) {
		t.Errorf("%q, want %q, %v", rows[1], want, err)
	}
	if rows, err = book.GetRows("Sheet2"); err != nil || len(rows) != 2 || rows[1][0] != "字" || rows[0][1] != "b" {
		t.Errorf("a long cell goes on in %d rows, %v", len(rows), err)
	}
	if _, err := Book([]Sheet{{Rows: make([][]string, maxRows+1)}}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too many rows: %v", err)
	}
}

// A cell is bounded in the units that spreadsheets count, and no part of it is lost. A number keeps its decimals: 1.10 is no 1.1.
func TestCellsKeepTheirContent(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("😀", 40_000) + "end"
	numbers := []string{"1.10", "12.50", "3.0", "1.1", "7", "0", "9999999999.12345", "1.123456"}
	body, err := Book([]Sheet{{Rows: [][]string{{long}, numbers}}})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := opened(t, body).GetRows("Sheet1")
	if err != nil || len(rows) != 4 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	if got := rows[0][0] + rows[1][0] + rows[2][0]; got != long {
		t.Errorf("of a cell of %d bytes %d are left", len(long), len(got))
	}
	if !slices.Equal(rows[3], numbers) {
		t.Errorf("%q, want %q", rows[3], numbers)
	}
}

// Spreadsheets accept the names of sheets, and no sheet is written over another one.
func TestSheetsHaveTheirOwnNames(t *testing.T) {
	t.Parallel()
	var sheets []Sheet
	for i, name := range []string{"汇总", "汇总", "history", "", "a\u202eb\x00\xff", strings.Repeat("😀", 20), "SHEET1", "'q'", "Sheet10", "sheet10"} {
		sheets = append(sheets, Sheet{Name: name, Rows: [][]string{{fmt.Sprint("row ", i)}}})
	}
	body, err := Book(sheets)
	if err != nil {
		t.Fatal(err)
	}
	book := opened(t, body)
	names := book.GetSheetList()
	if want := []string{"汇总", "Sheet2", "Sheet3", "Sheet4", "ab", strings.Repeat("😀", 15), "SHEET1", "q", "Sheet10", "Sheet11"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	for i, name := range names {
		if cell, err := book.GetCellValue(name, "A1"); cell != fmt.Sprint("row ", i) || err != nil {
			t.Errorf("sheet %q has %q, %v", name, cell, err)
		}
	}
}

func tableOf(rows, columns int) string {
	var b strings.Builder
	for i := range rows + 1 {
		b.WriteString("|" + strings.Repeat(fmt.Sprintf(" %d |", i), columns) + "\n")
		if i == 0 {
			b.WriteString("|" + strings.Repeat("---|", columns) + "\n")
		}
	}
	return b.String()
}

func TestLongTables(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text  string
		want  int
		title string
	}{
		"short":       {tableOf(maxTableRows, 2), 0, ""},
		"long":        {"好的。\n\n## **季度报表** ##\n" + tableOf(maxTableRows+1, 2) + "\n完", 1, "季度报表"},
		"wide":        {tableOf(PreviewRows+1, 30), 1, ""},
		"few rows":    {tableOf(PreviewRows, 100), 0, ""},
		"code":        {"```md\n" + tableOf(100, 2) + "```\n", 0, ""},
		"open code":   {"~~~\n" + tableOf(100, 2), 0, ""},
		"two":         {tableOf(100, 2) + "\n# b\n" + tableOf(100, 2), 2, "b"},
		"no rule":     {strings.ReplaceAll(tableOf(100, 2), "---", "x"), 0, ""},
		"escaped":     {strings.ReplaceAll(tableOf(100, 1), " 7 ", ` a \| **b** `), 1, ""},
		"without end": {strings.TrimSpace(tableOf(100, 2)), 1, ""},
	} {
		lines := strings.Split(tc.text, "\n")
		got := LongTables(lines)
		if len(got) != tc.want || tc.want > 0 && got[len(got)-1].Title != tc.title {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		for _, table := range got {
			if !strings.HasPrefix(lines[table.From], "|") || !strings.HasPrefix(lines[table.Through], "|") || table.Shown >= table.Through {
				t.Errorf("%s: lines %d to %d, shown to %d", name, table.From, table.Through, table.Shown)
			}
		}
		if name == "escaped" && got[0].Rows[7][0] != "a | **b**" {
			t.Errorf("%q", got[0].Rows[7])
		}
	}
}

// Any text is read, and a table never goes beyond it.
func TestAnyTextHasTables(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOf(rapid.SampledFrom([]string{"| a | b |", "|---|---|", "", "```", "# t", "a|b", "-|-", "x", "|"})).Draw(t, "lines")
		last := -1
		for _, table := range LongTables(lines) {
			if table.From <= last || table.Through >= len(lines) || len(table.Rows) != table.Through-table.From {
				t.Fatalf("%+v of %d lines", table, len(lines))
			}
			last = table.Through
		}
	})
}
