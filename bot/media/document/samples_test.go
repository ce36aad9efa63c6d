package document

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"
)

// pdfOf makes a PDF whose pages have the texts, in a font that maps codes to characters as those of Chinese programs do.
func pdfOf(pages ...string) []byte {
	var b bytes.Buffer
	var offsets []int
	object := func(format string, args ...any) {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n", len(offsets))
		fmt.Fprintf(&b, format, args...)
		b.WriteString("\nendobj\n")
	}
	b.WriteString("%PDF-1.4\n")
	kids := make([]string, len(pages))
	for i := range pages {
		kids[i] = fmt.Sprintf("%d 0 R", 6+2*i)
	}
	object("<< /Type /Catalog /Pages 2 0 R >>")
	object("<< /Type /Pages /Count %d /Kids [%s] >>", len(pages), strings.Join(kids, " "))
	object("<< /Type /Font /Subtype /Type0 /BaseFont /Song /Encoding /Identity-H /DescendantFonts [4 0 R] /ToUnicode 5 0 R >>")
	object("<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Song /DW 1000 /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> >>")
	cmap := "/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n/CMapName /X def\n1 begincodespacerange\n<0000> <FFFF>\nendcodespacerange\n" +
		mapOf(strings.Join(pages, "")) + "endcmap\nend\nend"
	object("<< /Length %d >>\nstream\n%s\nendstream", len(cmap), cmap)
	for i, text := range pages {
		var codes strings.Builder
		for _, r := range text {
			fmt.Fprintf(&codes, "%04X", r)
		}
		content := fmt.Sprintf("BT /F1 12 Tf 72 720 Td <%s> Tj ET", codes.String())
		object("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R >>", 7+2*i)
		object("<< /Length %d >>\nstream\n%s\nendstream", len(content), content)
	}
	at := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, offset := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", offset)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, at)
	return b.Bytes()
}

// mapOf maps the code of each character of text to it.
func mapOf(text string) string {
	var lines []string
	for _, r := range slices.Compact(slices.Sorted(slices.Values([]rune(text)))) {
		lines = append(lines, fmt.Sprintf("<%04X> <%04X>", r, r))
	}
	return fmt.Sprintf("%d beginbfchar\n%s\nendbfchar\n", len(lines), strings.Join(lines, "\n"))
}

func zipOf(t testing.TB, parts map[string]io.Reader) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, content := range parts {
		w, err := z.Create(name)
		if err == nil {
			_, err = io.Copy(w, content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func docxOf(t testing.TB, body string) []byte {
	t.Helper()
	return zipOf(t, map[string]io.Reader{docxPart: strings.NewReader(`<?xml version="1.0"?><w:document xmlns:w="w"><w:body>` + body + `</w:body></w:document>`)})
}

func pptxOf(t testing.TB, slides ...string) []byte {
	t.Helper()
	parts := map[string]io.Reader{"ppt/presentation.xml": strings.NewReader("<p:presentation/>")}
	for i, text := range slides {
		parts[fmt.Sprintf("ppt/slides/slide%d.xml", i+1)] = strings.NewReader("<p:sld xmlns:a=\"a\"><a:p><a:r><a:t>" + text + "</a:t></a:r></a:p></p:sld>")
	}
	return zipOf(t, parts)
}

func xlsxOf(t testing.TB, rows int) []byte {
	t.Helper()
	book := excelize.NewFile()
	defer func() { _ = book.Close() }()
	for i := range rows + 1 {
		row := []any{"姓名", "金额"}
		if i > 0 {
			row = []any{fmt.Sprintf("员工%d", i), i * 10}
		}
		if err := book.SetSheetRow("Sheet1", fmt.Sprintf("A%d", i+1), &row); err != nil {
			t.Fatal(err)
		}
	}
	b, err := book.WriteToBuffer()
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
