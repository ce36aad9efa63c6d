package document

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/image/bmp"
)

// half is red on the left and blue on the right.
func half(w, h int) image.Image {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			c := color.RGBA{0xff, 0, 0, 0xff}
			if x >= w/2 {
				c = color.RGBA{0, 0, 0xff, 0xff}
			}
			img.SetRGBA(x, y, c)
		}
	}
	return img
}

// held is a JPEG whose camera was held in a way, 1 to 8.
func held(t testing.TB, how byte) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, half(200, 100), nil); err != nil {
		t.Fatal(err)
	}
	tiff := []byte{'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, how, 0, 0, 0, 0, 0, 0}
	body := append([]byte("Exif\x00\x00"), tiff...)
	segment := append([]byte{0xff, 0xe1, 0, byte(len(body) + 2)}, body...)
	return append(append(bytes.Clone(b.Bytes()[:2]), segment...), b.Bytes()[2:]...)
}

// Pictures come scaled and upright, whatever their format, as models take them: a PNG or a JPEG.
func TestPicturesAreScaled(t *testing.T) {
	t.Parallel()
	encoded := func(encode func(*bytes.Buffer) error) []byte {
		var b bytes.Buffer
		if err := encode(&b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	for _, c := range []struct {
		name          string
		file          []byte
		kind          string
		width, height int
	}{
		{"png", encoded(func(b *bytes.Buffer) error { return png.Encode(b, half(40, 30)) }), "image/png", 40, 30},
		{"a large jpeg", encoded(func(b *bytes.Buffer) error { return jpeg.Encode(b, half(3000, 2000), nil) }), "image/jpeg", 1500, 1000},
		{"a long screenshot", encoded(func(b *bytes.Buffer) error { return png.Encode(b, half(1080, 6000)) }), "image/png", 519, 2886},
		{"gif", encoded(func(b *bytes.Buffer) error { return gif.Encode(b, half(40, 30), nil) }), "image/png", 40, 30},
		{"bmp", encoded(func(b *bytes.Buffer) error { return bmp.Encode(b, half(40, 30)) }), "image/png", 40, 30},
		{"held upright", held(t, 1), "image/jpeg", 200, 100},
		{"held upside down", held(t, 3), "image/jpeg", 200, 100},
		{"held on its side", held(t, 6), "image/jpeg", 100, 200},
		{"held on the other side", held(t, 8), "image/jpeg", 100, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "picture")
			if err := os.WriteFile(path, c.file, 0o600); err != nil {
				t.Fatal(err)
			}
			file, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = file.Close() }()
			got, err := sandbox(t).Read(t.Context(), file, func(Page) error { t.Error("a page"); return nil })
			if err != nil || got.Picture == nil || got.Kind != Picture {
				t.Fatalf("%+v, %v", got, err)
			}
			p := got.Picture
			if p.Type != c.kind || p.Width != c.width || p.Height != c.height {
				t.Errorf("%s of %d x %d, want %s of %d x %d", p.Type, p.Width, p.Height, c.kind, c.width, c.height)
			}
			img, _, err := image.Decode(bytes.NewReader(p.Body))
			if err != nil {
				t.Fatal(err)
			}
			at := image.Pt(p.Width/8, p.Height/2) // red in an upright picture
			switch c.name {
			case "held upside down":
				at.X = p.Width - at.X
			case "held on its side":
				at = image.Pt(p.Width/2, p.Height/8)
			case "held on the other side":
				at = image.Pt(p.Width/2, p.Height*7/8)
			}
			if r, _, b, _ := img.At(at.X, at.Y).RGBA(); r < b {
				t.Errorf("at %v it is %d red and %d blue: it was turned in the wrong way", at, r>>8, b>>8)
			}
		})
	}
}
