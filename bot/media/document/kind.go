package document

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"slices"
)

var (
	oleMagic = []byte{0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1}
	// oleEncrypted is the name of the stream that holds an encrypted Office file, in UTF-16.
	oleEncrypted = []byte("E\x00n\x00c\x00r\x00y\x00p\x00t\x00e\x00d\x00P\x00a\x00c\x00k\x00a\x00g\x00e\x00")
	zipMagic     = []byte("PK\x03\x04")
	// pdfWithin is how far from its beginning a PDF may name itself, as readers accept it.
	pdfMagic, pdfWithin = []byte("%PDF-"), 1024
)

// Sniff returns the kind of a file by its bytes, or a [Fault].
func Sniff(in io.ReaderAt, size int64) (Kind, error) {
	begin := make([]byte, min(size, sniffed))
	n, err := in.ReadAt(begin, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	begin = begin[:n]
	switch {
	case len(begin) == 0:
		return "", &Fault{Reason: Empty}
	case bytes.Contains(begin[:min(len(begin), pdfWithin)], pdfMagic):
		return PDF, nil
	case isPicture(begin):
		return Picture, nil
	case bytes.HasPrefix(begin, zipMagic):
		return sniffArchive(in, size)
	case bytes.HasPrefix(begin, oleMagic):
		return "", sniffOLE(in, size)
	case isText(begin, int64(len(begin)) < size):
		return Text, nil
	}
	return "", &Fault{Reason: Unsupported}
}

// sniffOLE separates encrypted files from legacy ones. The directory of streams may stand anywhere in the file.
func sniffOLE(in io.ReaderAt, size int64) error {
	const step = 1 << 20
	buf := make([]byte, step+len(oleEncrypted))
	for at := int64(0); at < size; at += step {
		n, err := in.ReadAt(buf, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if bytes.Contains(buf[:n], oleEncrypted) {
			return &Fault{Reason: Encrypted}
		}
	}
	return &Fault{Reason: Legacy}
}

func sniffArchive(in io.ReaderAt, size int64) (Kind, error) {
	z, err := zip.NewReader(in, size)
	if err != nil {
		return "", &Fault{Reason: Broken, Err: err}
	}
	for kind, part := range map[Kind]string{DOCX: docxPart, XLSX: "xl/workbook.xml", PPTX: "ppt/presentation.xml"} {
		if slices.ContainsFunc(z.File, func(f *zip.File) bool { return f.Name == part }) {
			return kind, nil
		}
	}
	return "", &Fault{Reason: Unsupported}
}
