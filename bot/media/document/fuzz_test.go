package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"image"
	"image/gif"
	"image/png"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/image/bmp"

	"ebb/bot/media/document/documenttest"
)

// fuzzLimits are small, so that many files exceed them.
var fuzzLimits = Limits{Pages: 20, Text: 10_000, Unzip: 1 << 20}

// maxFuzzed bounds an input: the law of a bound of memory is that of the child, see TestChildIsConfined.
const maxFuzzed = 64 << 10

// fuzzKind holds that any bytes, read as one of a kind, are pages of valid text within the limits, or a fault with a reason.
func fuzzKind(f *testing.F, kind Kind, seeds ...[]byte) {
	f.Helper()
	for _, seed := range seeds {
		f.Add(seed)
		f.Add(seed[:len(seed)/2])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > maxFuzzed {
			return
		}
		var pages []Page
		_, err := readAs(kind, bytes.NewReader(b), int64(len(b)), fuzzLimits, func(p Page) error { pages = append(pages, p); return nil })
		checkPages(t, pages, err)
	})
}

func checkPages(t *testing.T, pages []Page, err error) {
	t.Helper()
	if err != nil {
		if fault, ok := errors.AsType[*Fault](err); !ok || fault.Reason == "" {
			t.Errorf("no fault: %v", err)
		}
	}
	total := 0
	for i, p := range pages {
		total += len(p.Text)
		if !utf8.ValidString(p.Text) || strings.ContainsRune(p.Text, 0) || strings.TrimSpace(p.Text) == "" || i > 0 && p.Number <= pages[i-1].Number {
			t.Errorf("page %+v", p)
		}
	}
	if len(pages) > fuzzLimits.Pages || total > fuzzLimits.Text {
		t.Errorf("%d pages, %d bytes", len(pages), total)
	}
}

// FuzzRead holds that of [fuzzKind] for the kind that the bytes show.
func FuzzRead(f *testing.F) {
	for _, seed := range [][]byte{
		[]byte("text"), documenttest.PDF("一"), documenttest.DOCX("<w:p><w:r><w:t>a</w:t></w:r></w:p>"), documenttest.PPTX("a"), xlsxOf(f, 2),
		append(bytes.Clone(oleMagic), 0), {0xff, 0xfe, 'a', 0}, documenttest.HugePNG(50_000),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		pages, _, err := read(b, fuzzLimits)
		checkPages(t, pages, err)
	})
}

func FuzzText(f *testing.F) {
	fuzzKind(f, Text, []byte("一\r\n二\x00"), []byte{0xff, 0xfe, 'a', 0}, []byte{0xfe, 0xff, 0, 'a'}, []byte{0xba, 0xcf, 0xcd, 0xac}, []byte("\ufeff"+strings.Repeat("长", 2000)))
}

func FuzzPDF(f *testing.F) {
	fuzzKind(f, PDF, documenttest.PDF("第一页", "第二页"), documenttest.PDFBomb(1000), []byte("%PDF-1.4\n1 0 obj << /Type /Pages /Kids [1 0 R] /Count 9 >> endobj\ntrailer << /Root 1 0 R >>"))
}

func FuzzDOCX(f *testing.F) {
	fuzzKind(f, DOCX, documenttest.DOCX("<w:p><w:r><w:t>a</w:t><w:br w:type=\"page\"/></w:r></w:p>"), documenttest.DOCXBomb(2<<20))
}

func FuzzPPTX(f *testing.F) { fuzzKind(f, PPTX, documenttest.PPTX("一", "二")) }

func FuzzXLSX(f *testing.F) { fuzzKind(f, XLSX, xlsxOf(f, 3)) }

// FuzzPicture holds that any bytes are a picture that a model takes, of the size that it names, or a fault with a reason.
func FuzzPicture(f *testing.F) {
	for _, encode := range []func(b *bytes.Buffer) error{
		func(b *bytes.Buffer) error { return png.Encode(b, half(9, 7)) }, func(b *bytes.Buffer) error { return gif.Encode(b, half(9, 7), nil) },
		func(b *bytes.Buffer) error { return bmp.Encode(b, half(9, 7)) },
	} {
		var b bytes.Buffer
		if err := encode(&b); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	for how := byte(1); how <= 9; how++ {
		f.Add(held(f, how))
	}
	f.Add(documenttest.HugePNG(50_000))
	f.Add([]byte("RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > maxFuzzed {
			return
		}
		if config, _, err := image.DecodeConfig(bytes.NewReader(b)); err == nil && config.Width*config.Height > 4_000_000 && config.Width*config.Height <= maxPixels {
			return // sound, and slow
		}
		c, err := readAs(Picture, bytes.NewReader(b), int64(len(b)), fuzzLimits, nil)
		if err != nil {
			if fault, ok := errors.AsType[*Fault](err); !ok || fault.Reason == "" {
				t.Errorf("no fault: %v", err)
			}
			return
		}
		if c.Picture == nil || !c.Picture.isSound() {
			t.Fatalf("no sound picture: %+v", c.Picture)
		}
		if config, format, err := image.DecodeConfig(bytes.NewReader(c.Picture.Body)); err != nil || config.Width != c.Picture.Width || config.Height != c.Picture.Height || "image/"+format != c.Picture.Type {
			t.Errorf("%s of %d x %d is %s of %d x %d, %v", c.Picture.Type, c.Picture.Width, c.Picture.Height, format, config.Width, config.Height, err)
		}
	})
}

// FuzzReceive holds that a child that writes anything yields storable pages within the limits, and no picture that is none.
func FuzzReceive(f *testing.F) {
	line := func(r record) string {
		b, err := json.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		return string(b)
	}
	page := line(record{Page: &Page{Number: 1, Text: "一"}})
	end := line(record{End: &endRecord{Kind: PDF, Pages: 1}})
	f.Add([]byte(page + end))
	f.Add([]byte(strings.Repeat(page, 30) + end))
	f.Add([]byte(line(record{Page: &Page{Number: -1, Title: strings.Repeat("长", 300), Text: "\x00"}}) + line(record{End: &endRecord{Fault: &faultRecord{Reason: Broken}}})))
	f.Add([]byte(line(record{End: &endRecord{Picture: &Scaled{Type: "image/png", Width: 1, Height: 1, Body: []byte("x")}}})))
	f.Add([]byte(line(record{End: &endRecord{Picture: &Scaled{Type: "text/html", Width: 1 << 40, Height: -1}}})))
	f.Add([]byte(`{"page":{"number":1e99,"text":"\ud800"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := &Sandbox{limits: fuzzLimits}
		pages, total := 0, 0
		end, err := s.receive(bytes.NewReader(b), func(p Page) error {
			pages, total = pages+1, total+len(p.Text)
			for _, text := range []string{p.Text, p.Title} {
				if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
					t.Errorf("page %+v can't be stored", p)
				}
			}
			if len(p.Title) > maxTitle {
				t.Errorf("a title of %d bytes", len(p.Title))
			}
			return nil
		})
		if pages > fuzzLimits.Pages || total > 3*fuzzLimits.Text+3*200*fuzzLimits.Pages {
			t.Errorf("%d pages, %d bytes", pages, total)
		}
		if (end == nil) == (err == nil) || end != nil && !end.Picture.isSound() {
			t.Errorf("end %+v, %v", end, err)
		}
	})
}
