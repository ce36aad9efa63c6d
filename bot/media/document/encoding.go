package document

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"
)

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

// isText reports whether bytes are text in an encoding that is read. cut says that the file goes on.
func isText(b []byte, cut bool) bool {
	if _, ok := decoderOf(b); ok {
		return true
	}
	if bytes.IndexByte(b, 0) >= 0 {
		return false
	}
	return utf8.Valid(trimCut(b, cut)) || isGB18030(trimCut(b, cut))
}

// trimCut drops a character that the end of the sample cuts.
func trimCut(b []byte, cut bool) []byte {
	if !cut {
		return b
	}
	for i := 1; i <= utf8.UTFMax && i <= len(b); i++ {
		if utf8.RuneStart(b[len(b)-i]) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// clean makes text storable: valid UTF-8 without control characters but tab and line feed.
func clean(text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' || r == 0x7f || r == 0xfeff {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "�"))
}

// head is the beginning of text, at most limit bytes.
func head(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}
