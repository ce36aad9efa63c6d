package document

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/transform"
)

// pageText is the size of a page of a text, in bytes: about 3,000 letters or 1,000 characters.
const pageText = 3000

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
