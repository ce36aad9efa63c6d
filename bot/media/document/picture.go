package document

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	_ "image/gif" // its first frame
	"image/jpeg"
	"image/png"
	"io"
	"math"

	_ "golang.org/x/image/bmp" // a format
	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp" // a format
)

const (
	// maxPixels bounds a picture before it is decoded: 50 million take 200 MB.
	maxPixels = 50_000_000
	maxSide   = 30_000
	// scaledPixels and scaledSide bound a picture for a model. A screen of a phone stays readable.
	scaledPixels = 1_500_000
	scaledSide   = 4096
	// losslessBytes is the size up to which a picture without loss stays one: letters stay sharp.
	losslessBytes = 600 << 10
	maxBody       = 4 << 20
	quality       = 85
)

var pictureMagic = [][]byte{{0xff, 0xd8, 0xff}, []byte("\x89PNG\r\n\x1a\n"), []byte("GIF8"), []byte("BM")}

func isPicture(begin []byte) bool {
	for _, magic := range pictureMagic {
		if bytes.HasPrefix(begin, magic) {
			return true
		}
	}
	return len(begin) >= 12 && string(begin[:4]) == "RIFF" && string(begin[8:12]) == "WEBP"
}

// readPicture decodes a picture, turns it upright, and scales it down.
func readPicture(in io.ReaderAt, size int64) (*Scaled, error) {
	config, format, err := image.DecodeConfig(io.NewSectionReader(in, 0, size))
	switch {
	case err != nil:
		return nil, err
	case config.Width <= 0 || config.Height <= 0:
		return nil, errors.New("it has no size")
	case config.Width > maxSide || config.Height > maxSide || config.Width*config.Height > maxPixels:
		return nil, &Fault{Reason: TooComplex, Err: fmt.Errorf("%d x %d pixels", config.Width, config.Height)}
	}
	from, _, err := image.Decode(io.NewSectionReader(in, 0, size))
	if err != nil {
		return nil, err
	}
	to := scale(from)
	if format == "jpeg" {
		to = turn(to, orientation(in, size))
	}
	s := &Scaled{Width: to.Bounds().Dx(), Height: to.Bounds().Dy()}
	var b bytes.Buffer
	if format != "jpeg" {
		if err := png.Encode(&b, to); err == nil && b.Len() <= losslessBytes {
			s.Type, s.Body = "image/png", b.Bytes()
			return s, nil
		}
		b.Reset()
	}
	if err := jpeg.Encode(&b, to, &jpeg.Options{Quality: quality}); err != nil {
		return nil, err
	}
	s.Type, s.Body = "image/jpeg", b.Bytes()
	return s, nil
}

// scale draws a picture on white, at most as large as models use.
func scale(from image.Image) *image.RGBA {
	w, h := from.Bounds().Dx(), from.Bounds().Dy()
	factor := min(1, math.Sqrt(scaledPixels/float64(w*h)), scaledSide/float64(max(w, h)))
	to := image.NewRGBA(image.Rect(0, 0, max(1, int(float64(w)*factor)), max(1, int(float64(h)*factor))))
	draw.Draw(to, to.Bounds(), image.NewUniform(color.White), image.Point{}, draw.Src)
	if factor == 1 {
		draw.Draw(to, to.Bounds(), from, from.Bounds().Min, draw.Over)
	} else {
		draw.ApproxBiLinear.Scale(to, to.Bounds(), from, from.Bounds(), draw.Over, nil)
	}
	return to
}

// isSound judges what a child wrote. nil is no picture.
func (s *Scaled) isSound() bool {
	return s == nil || (s.Type == "image/png" || s.Type == "image/jpeg") && s.Width > 0 && s.Height > 0 && s.Width <= scaledSide && s.Height <= scaledSide &&
		len(s.Body) > 0 && len(s.Body) <= maxBody
}
