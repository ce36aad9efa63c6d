// Package documenttest makes files for tests: documents of each kind, and files that mean harm.
package documenttest

import (
	"archive/zip"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/png"
	"io"
	"slices"
	"strings"

	"github.com/xuri/excelize/v2"
)

// PDF makes a PDF whose pages have the texts, in a font that maps codes to characters as those of Chinese programs do.
func PDF(pages ...string) []byte { return pdf(pages, "", nil) }

// LargePDF is a [PDF] of nearly size bytes, with a picture that no page shows.
func LargePDF(size int, pages ...string) []byte {
	room := size - len(PDF(pages...)) - 500
	return pdf(pages, "", bytes.Repeat([]byte{0x1f, 0x8b, 0x33, 0xc1, 0x77}, room/5))
}

// PDFBomb is a small PDF with a page whose one word has size bytes when it is unpacked.
func PDFBomb(size int64) []byte {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	_, _ = io.Copy(z, io.MultiReader(strings.NewReader("BT /F1 12 Tf ("), io.LimitReader(Blanks{}, size))) // a buffer does not fail
	_ = z.Close()
	return pdf([]string{""}, b.String(), nil)
}

// Blanks has no end.
type Blanks struct{}

// Read implements io.Reader.
func (Blanks) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// pdf writes pages. packed replaces their contents, unless it is empty; extra is an object of its own.
func pdf(pages []string, packed string, extra []byte) []byte {
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
		if packed != "" {
			object("<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream", len(packed), packed)
			continue
		}
		object("<< /Length %d >>\nstream\n%s\nendstream", len(content), content)
	}
	if len(extra) > 0 {
		object("<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /Length %d >>\nstream\n%s\nendstream", len(extra), extra)
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

// Archive is a ZIP file of parts.
func Archive(parts map[string]io.Reader) ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, content := range parts {
		w, err := z.Create(name)
		if err != nil {
			return nil, err
		}
		if _, err := io.Copy(w, content); err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return b.Bytes(), err
}

func archiveOf(parts map[string]string) []byte {
	readers := map[string]io.Reader{}
	for name, content := range parts {
		readers[name] = strings.NewReader(content)
	}
	b, _ := Archive(readers) // strings and a buffer do not fail
	return b
}

// DOCX has a body of WordprocessingML.
func DOCX(body string) []byte {
	return archiveOf(map[string]string{"word/document.xml": `<?xml version="1.0"?><w:document xmlns:w="w"><w:body>` + body + `</w:body></w:document>`})
}

// DOCXBomb is a small DOCX whose text has size bytes when it is unpacked.
func DOCXBomb(size int64) []byte {
	b, _ := Archive(map[string]io.Reader{"word/document.xml": io.MultiReader(strings.NewReader("<w:document><w:t>"), io.LimitReader(Blanks{}, size))}) // as above
	return b
}

// PPTX has a slide for each text.
func PPTX(slides ...string) []byte {
	parts := map[string]string{"ppt/presentation.xml": "<p:presentation/>"}
	for i, text := range slides {
		parts[fmt.Sprintf("ppt/slides/slide%d.xml", i+1)] = "<p:sld xmlns:a=\"a\"><a:p><a:r><a:t>" + text + "</a:t></a:r></a:p></p:sld>"
	}
	return archiveOf(parts)
}

// XLSX has one sheet. A password encrypts it.
func XLSX(rows [][]any, password string) ([]byte, error) {
	book := excelize.NewFile()
	defer func() { _ = book.Close() }()
	for i := range rows {
		if err := book.SetSheetRow("Sheet1", fmt.Sprintf("A%d", i+1), &rows[i]); err != nil {
			return nil, err
		}
	}
	var b bytes.Buffer
	err := book.Write(&b, excelize.Options{Password: password})
	return b.Bytes(), err
}

// HugePNG says that it has side x side pixels, and is small.
func HugePNG(side uint32) []byte {
	var b bytes.Buffer
	_ = png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))) // as above
	file := b.Bytes()
	head := file[12:29] // IHDR and its fields
	binary.BigEndian.PutUint32(head[4:], side)
	binary.BigEndian.PutUint32(head[8:], side)
	binary.BigEndian.PutUint32(file[29:], crc32.ChecksumIEEE(head))
	return file
}
