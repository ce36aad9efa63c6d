package document

import (
	"bytes"
	"encoding/binary"
	"image"
	"io"
)

// orientation reads how a camera was held, 1 to 8, from the Exif data of a JPEG; 1: upright, or not known.
func orientation(in io.ReaderAt, size int64) int {
	begin := make([]byte, min(size, sniffed))
	n, _ := in.ReadAt(begin, 0) // a shorter file has none
	b := begin[:n]
	for at := 2; at+4 <= len(b) && b[at] == 0xff; {
		marker, length := b[at+1], int(binary.BigEndian.Uint16(b[at+2:]))
		end := at + 2 + length
		if marker == 0xda || length < 2 || end > len(b) {
			break
		}
		if tiff, ok := bytes.CutPrefix(b[at+4:end], []byte("Exif\x00\x00")); ok && marker == 0xe1 {
			return orientationTag(tiff)
		}
		at = end
	}
	return 1
}

func orientationTag(tiff []byte) int {
	if len(tiff) < 8 {
		return 1
	}
	var order binary.ByteOrder = binary.BigEndian
	if tiff[0] == 'I' {
		order = binary.LittleEndian
	}
	first := int(order.Uint32(tiff[4:]))
	if first < 8 || first+2 > len(tiff) {
		return 1
	}
	const entry, tag = 12, 0x0112
	for i, n := 0, int(order.Uint16(tiff[first:])); i < n; i++ {
		at := first + 2 + i*entry
		if at+entry > len(tiff) {
			break
		}
		if order.Uint16(tiff[at:]) == tag {
			if v := int(order.Uint16(tiff[at+8:])); v >= 1 && v <= 8 {
				return v
			}
			break
		}
	}
	return 1
}

// turn makes a picture upright.
func turn(from *image.RGBA, how int) *image.RGBA {
	w, h := from.Bounds().Dx(), from.Bounds().Dy()
	if how <= 1 || how > 8 {
		return from
	}
	size := image.Rect(0, 0, w, h)
	if how >= 5 {
		size = image.Rect(0, 0, h, w)
	}
	to := image.NewRGBA(size)
	for y := range h {
		for x := range w {
			tx, ty := x, y
			switch how {
			case 2:
				tx = w - 1 - x
			case 3:
				tx, ty = w-1-x, h-1-y
			case 4:
				ty = h - 1 - y
			case 5:
				tx, ty = y, x
			case 6:
				tx, ty = h-1-y, x
			case 7:
				tx, ty = h-1-y, w-1-x
			case 8:
				tx, ty = y, w-1-x
			}
			to.SetRGBA(tx, ty, from.RGBAAt(x, y))
		}
	}
	return to
}
