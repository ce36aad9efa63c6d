package document

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// pageText is the size of a page of a text, in bytes: about 3,000 letters or 1,000 characters.
const pageText = 3000

// decoderOf returns the encoding that a byte order mark names.
func decoderOf(b []byte) (encoding.Encoding, bool) {
	switch {
	case bytes.HasPrefix(b, []byte{0xff, 0xfe}):
		return unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), true
	case bytes.HasPrefix(b, []byte{0xfe, 0xff}):
		return unicode.UTF16(unicode.BigEndian, unicode.UseBOM), true
	case bytes.HasPrefix(b, []byte{0xef, 0xbb, 0xbf}):
		return unicode.UTF8BOM, true
	}
	return nil, false
}

// isGB18030 reports whether bytes are Chinese text of older programs. Two bytes of garbage are legal there more often than not, so control
// characters speak against it.
func isGB18030(b []byte) bool {
	text, err := simplifiedchinese.GB18030.NewDecoder().Bytes(b)
	if err != nil {
		return false
	}
	odd := 0
	for _, r := range string(text) {
		if r == utf8.RuneError || r < ' ' && r != '\n' && r != '\r' && r != '\t' || 0x7f <= r && r < 0xa0 || 0xe000 <= r && r < 0xf900 {
			odd++
		}
	}
	return odd*50 <= utf8.RuneCount(text)
}

func readText(in io.ReaderAt, size int64, _ Limits, put emit) error {
	begin := make([]byte, min(size, sniffed))
	n, err := in.ReadAt(begin, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	enc, marked := decoderOf(begin[:n])
	if !marked {
		enc = encoding.Nop
		if !utf8.Valid(trimCut(begin[:n], int64(n) < size)) {
			enc = simplifiedchinese.GB18030
		}
	}
	return paginate(transform.NewReader(io.NewSectionReader(in, 0, size), enc.NewDecoder()), "", put)
}

// paginate cuts a text into pages at ends of lines, and a line without end anywhere.
func paginate(r io.Reader, title string, put emit) error {
	lines := bufio.NewReaderSize(r, pageText)
	var page strings.Builder
	flush := func() error {
		if page.Len() == 0 {
			return nil
		}
		text := page.String()
		page.Reset()
		return put(title, text)
	}
	for {
		line, err := lines.ReadSlice('\n')
		if page.Len() > 0 && page.Len()+len(line) > pageText {
			// A character that the buffer cut stays whole: its first bytes go to the next page with it.
			rest := ""
			if text := page.String(); !strings.HasSuffix(text, "\n") {
				whole := trimCut([]byte(text), true)
				rest = text[len(whole):]
				page.Reset()
				page.Write(whole)
			}
			if err := flush(); err != nil {
				return err
			}
			page.WriteString(rest)
		}
		page.Write(line)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return flush()
		case err != nil:
			return err
		}
	}
}
