package markdown

import "strings"

// indent measures the leading blanks, in columns and bytes.
func indent(s string) (width, bytes int) {
	for bytes < len(s) && (s[bytes] == ' ' || s[bytes] == '\t') {
		width++
		if s[bytes] == '\t' {
			width += 3 - (width-1)%4
		}
		bytes++
	}
	return width, bytes
}

// columns is the number of bytes in the first n columns of blanks.
func columns(s string, n int) int {
	b := 0
	for b < len(s) {
		if w, _ := indent(s[:b]); w >= n {
			break
		}
		b++
	}
	return b
}

func afterBlank(s string, at int) int {
	if at < len(s) && (s[at] == ' ' || s[at] == '\t') {
		at++
	}
	return at
}

func run(s string, c byte) int {
	n := 0
	for n < len(s) && s[n] == c {
		n++
	}
	return n
}

// marker is the length of a leading list marker, or 0.
func marker(s string) int {
	k := 1
	if !strings.ContainsRune("-+*", rune(s[0])) {
		for k = 0; k < len(s) && k < 10 && s[k] >= '0' && s[k] <= '9'; k++ {
		}
		if k == 0 || k > 9 || k == len(s) || s[k] != '.' && s[k] != ')' {
			return 0
		}
		k++
	}
	if k < len(s) && s[k] != ' ' && s[k] != '\t' {
		return 0
	}
	return k
}

// A list may begin below a paragraph without a blank line if it is not empty and counts from 1.
func mayInterrupt(s string, k int) bool {
	return strings.TrimSpace(s[k:]) != "" && (k == 1 || strings.Trim(s[:k-1], "0") == "1" && s[k-2] == '1')
}

func isRule(s string) bool {
	if s == "" || !strings.ContainsRune("-*_", rune(s[0])) {
		return false
	}
	n := 0
	for i := range len(s) {
		switch s[i] {
		case s[0]:
			n++
		case ' ', '\t':
		default:
			return false
		}
	}
	return n > 2
}

func isHeading(s string) bool {
	n := run(s, '#')
	return n > 0 && n < 7 && (n == len(s) || s[n] == ' ' || s[n] == '\t')
}

func fenceOf(s string) Fence {
	if s == "" || s[0] != '`' && s[0] != '~' {
		return Fence{}
	}
	n := run(s, s[0])
	info := strings.TrimSpace(s[n:])
	if n < 3 || n > maxMark || len(info) > maxInfo || s[0] == '`' && strings.Contains(info, "`") {
		return Fence{}
	}
	return Fence{Mark: s[:n], Info: info}
}

func isTableRule(s string) bool {
	if !strings.Contains(s, "|") || strings.Trim(s, "|:- \t") != "" {
		return false
	}
	for _, cell := range Cells(s) {
		cell = strings.TrimSpace(cell)
		if strings.Trim(strings.TrimSuffix(strings.TrimPrefix(cell, ":"), ":"), "-") != "" || !strings.Contains(cell, "-") {
			return false
		}
	}
	return true
}

func cells(s string) int { return len(Cells(s)) }

// Cells keep the blanks around their text.
func Cells(s string) []string {
	s = strings.TrimPrefix(strings.TrimSpace(s), "|")
	var out []string
	begin := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '|':
			out = append(out, s[begin:i])
			begin = i + 1
		}
	}
	if begin < len(s) {
		out = append(out, s[begin:])
	}
	return out
}
