package main

import "io"

// printable passes text to a terminal without control sequences: control characters other than newline and tab become
// "?". A model's answer or a nick could otherwise move the cursor, set the title or hide earlier text.
type printable struct {
	out  io.Writer
	lead bool // the last byte may begin a control character of two bytes, U+0080 to U+009F
}

// leadC1 is the first byte of U+0080 to U+00BF in UTF-8.
const leadC1 = 0xC2

// Write implements io.Writer. The count is that of p, regardless of replacements.
func (w *printable) Write(p []byte) (int, error) {
	text := make([]byte, 0, len(p)+1)
	for _, b := range p {
		switch {
		case w.lead && b >= 0x80 && b <= 0x9F:
			text = append(text, '?')
			w.lead = false
			continue
		case w.lead:
			text = append(text, leadC1)
			w.lead = false
		}
		switch {
		case b == leadC1:
			w.lead = true
		case b < ' ' && b != '\n' && b != '\t', b == 0x7F:
			text = append(text, '?')
		default:
			text = append(text, b)
		}
	}
	if _, err := w.out.Write(text); err != nil {
		return 0, err
	}
	return len(p), nil
}
