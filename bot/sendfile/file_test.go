package sendfile

import (
	"archive/zip"
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"
	"unicode/utf8"

	"ebb/sessions"
)

func pngOf(t *testing.T, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.White})); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipOf(t *testing.T, names ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range names {
		if _, err := z.Create(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The bytes decide the type, whatever the name says, and a name is only a name.
func TestFilesAreOfTheTypeOfTheirBytes(t *testing.T) {
	t.Parallel()
	picture, ole := pngOf(t, 3, 2), []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1rest")
	huge := bytes.Clone(picture)
	copy(huge[16:24], "\x00\x01\x00\x00\x00\x01\x00\x00") // 65,536 pixels wide and high
	for _, tc := range []struct {
		name string
		body []byte
		want string
		kind sessions.FileKind
		err  error
	}{
		{"图.png", picture, "图.png", sessions.FileImage, nil},
		{"图.html", picture, "图.png", sessions.FileImage, nil},
		{"../../etc/passwd", picture, "passwd.png", sessions.FileImage, nil},
		{`C:\temp\报表.xlsx`, zipOf(t, "xl/workbook.xml"), "报表.xlsx", sessions.FilePlain, nil},
		{"报表.docx", zipOf(t, "xl/workbook.xml"), "报表.xlsx", sessions.FilePlain, nil},
		{"a.zip", zipOf(t, "readme.txt"), "a.zip", sessions.FilePlain, nil},
		{"a.pdf", []byte("%PDF-1.7\n"), "a.pdf", sessions.FilePlain, nil},
		{"旧.xls", ole, "旧.xls", sessions.FilePlain, nil},
		{"旧.exe", ole, "", "", ErrType},
		{"图.png", []byte("<html><script>alert(1)</script></html>"), "", "", ErrType},
		{"图.png", []byte("<svg xmlns='http://www.w3.org/2000/svg'/>"), "", "", ErrType},
		{"图.png", picture[:20], "", "", ErrPicture},
		{"图.png", huge, "", "", ErrPicture},
		{"a.zip", []byte("PK\x03\x04broken"), "", "", ErrType},
		{"a.png", nil, "", "", ErrEmpty},
		{"a.pdf", append([]byte("%PDF-1.7\n"), make([]byte, sessions.MaxFile)...), "", "", ErrTooLarge},
	} {
		f, err := judge(tc.name, tc.body)
		if f.Name != tc.want || f.Kind != tc.kind || !errors.Is(err, tc.err) {
			t.Errorf("%q: %q %q, %v; want %q %q, %v", tc.name, f.Name, f.Kind, err, tc.want, tc.kind, tc.err)
		}
	}
}

func TestNamesAreSafe(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"": "file.png", ".": "file.png", "..": "file.png", "/": "file.png", "a/b/c.txt": "c.png", "\u202egnp.exe": "gnp.png", "x\x00\ny.png": "xy.png",
		"[点我](http://evil)": "evil.png", strings.Repeat("长", 200): strings.Repeat("长", maxName) + ".png", ".bashrc": "bashrc.png", "CON.txt": "file-CON.png", "lpt1.a.png": "file-lpt1.a.png", "console": "console.png", "a  b .png": "a b.png", "\xff\xfe": "file.png", "报告 v1.2": "报告 v1.2.png", "2026.11月报": "2026.11月报.png", "x.tar.gz": "x.tar.png", "a\u2028b\u2066.PDF": "a b.png",
		"=cmd|calc.xlsx": "=cmdcalc.png", "@all.png": "@all.png", strings.Repeat("a", 300) + ".docx": strings.Repeat("a", maxName) + ".png", "a\u0301.png": "a\u0301.png",
	} {
		if got := safeName(name, "png"); got != want || !utf8.ValidString(got) {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
