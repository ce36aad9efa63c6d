package identify

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"ebb/sessions/redact"
)

// Type is a kind of identifier.
type Type string

// The types of identifiers.
const (
	TypeURL     Type = "url"
	TypeEmail   Type = "email"
	TypePhone   Type = "phone"
	TypeID      Type = "id" // six digits or more, hexadecimal, UUIDs, ticket keys
	TypePath    Type = "path"
	TypeHost    Type = "host" // IP address, or host with port
	TypeVersion Type = "version"
	TypeMoney   Type = "money"
	TypePercent Type = "percent"
	TypeDate    Type = "date"
	TypeTime    Type = "time"
	TypeCode    Type = "code"
	TypeName    Type = "name"
)

// Identifier is a value that a summary must repeat exactly or not at all.
type Identifier struct {
	Type Type
	Key  string // equal for all spellings of a value
	Text string // original spelling, in half width

	Who     string // speaker; empty for none
	Seq     int64  // event; 0 in a summary
	Context string // surrounding text, on one line

	// Loose is the key of less exact spellings: a day without its year, an hour without its half of the day, an amount
	// without its currency.
	Loose string
	// Weak marks a form that is too common to require: 3/5 is a day or a score.
	Weak     bool
	From, To int // bytes in the text
}

// Find lists the identifiers of a text in order, without names.
func Find(text string) []Identifier { return FindWithNames(Fold(text), nil) }

// taken overwrites the place of a found identifier: no letter, digit or sign.
const taken = 0x01

// FindWithNames also finds the names of a [NameList].
func FindWithNames(f Folded, names []string) []Identifier { return identifyIn(f, names, searchRegions) }

func identifyIn(f Folded, names []string, pieces func(text []byte) [][2]int) []Identifier {
	s := textScan{f: f, left: []byte(f.Text), rules: patterns}
	for _, m := range bytesOf(redact.Mark, s.left) { // text that touches a mask is half a credential
		s.claimRange(Identifier{Key: redact.Mark}, m, m+len(redact.Mark))
	}
	hidden := len(s.found)
	for _, at := range pieces(s.left) {
		s.claimForms(at[0], at[1])
	}
	for _, m := range codeRE.FindAllSubmatchIndex(s.left, -1) {
		if text := string(s.left[m[2]:m[3]]); looksLikeCode(text) {
			s.claimRange(Identifier{Type: TypeCode, Key: "code:" + strings.ToLower(text), Text: text}, m[0], m[1])
		}
	}
	s.claimNames(names)
	found := s.found[hidden:]
	slices.SortFunc(found, func(a, b Identifier) int { return a.From - b.From })
	return found
}

type textScan struct {
	rules []formPattern
	f     Folded
	left  []byte
	found []Identifier
}

func (s *textScan) claimRange(id Identifier, from, to int) {
	id.From, id.To = s.f.at[from], s.f.at[to]
	if id.Text == "" {
		id.Text = s.f.Text[from:to]
	}
	for i := from; i < to; i++ {
		s.left[i] = taken
	}
	s.found = append(s.found, id)
}

// inForms are the characters beyond ASCII in forms: units.
var inForms = func() map[rune]bool {
	in := map[rune]bool{}
	for _, p := range patterns {
		for _, r := range p.re.String() {
			in[r] = r >= utf8.RuneSelf
		}
	}
	return in
}()

// searchRegions lists the byte ranges around words with a hint: few, above all in Chinese, so that the search is many
// times as fast.
func searchRegions(text []byte) [][2]int {
	var all [][2]int
	for from := 0; from < len(text); {
		to := from
		for to < len(text) {
			c, n := rune(text[to]), 1
			if c >= utf8.RuneSelf {
				c, n = utf8.DecodeRune(text[to:])
			}
			if c < ' ' || c == 0x7f || c > 0x7f && !inForms[c] {
				break
			}
			to += n
		}
		all = withHints(all, text[:to], from)
		from = to
		if from < len(text) {
			_, n := utf8.DecodeRune(text[from:])
			from += n
		}
	}
	return all
}

// formReach is the number of words of a form around its hint, as in "3rd of May".
const formReach = 2

// withHints adds the surroundings of words such as "order no.", where an identifier may have no form of its own. Pieces grow while
// hints follow within reach.
func withHints(all [][2]int, text []byte, from int) [][2]int {
	var starts []int // words so far outside of all pieces
	open := -1       // number of words by which the last piece may still grow; -1: closed
	for at := from; at < len(text); {
		for at < len(text) && text[at] == ' ' {
			at++
		}
		start := at
		for at < len(text) && text[at] != ' ' {
			at++
		}
		switch starts = append(starts, start); {
		case start == at:
		case hasHint(text[start:at]) && open >= 0:
			all[len(all)-1][1], open, starts = at, formReach, nil
		case hasHint(text[start:at]):
			begin := starts[max(0, len(starts)-1-formReach)]
			all, open, starts = append(all, [2]int{begin, at}), formReach, nil
		case open > 0:
			all[len(all)-1][1], starts = at, nil
			open--
		default:
			open = -1
		}
	}
	return all
}

// Hints are a digit, a sign of addresses and paths, or an inner point.
func hasHint(word []byte) bool {
	for i, c := range word {
		if isNum(c) || c == '/' || c == '@' || c == '\\' || c == '.' && i+1 < len(word) {
			return true
		}
	}
	return false
}

// claimForms runs the expressions over one piece. Cheap tests of letters and digits come first: most pieces hold nothing. A range
// that was claimed is taken out, so that a longer form wins over the shorter ones in it.
func (s *textScan) claimForms(begin, end int) {
	part := s.left[begin:end]
	low, digits := LowerASCII(part), 0 // taken from the whole piece, which only shrinks
	for _, c := range low {
		if isNum(c) {
			digits++
		}
	}
	for _, p := range s.rules {
		if !p.mayContain(low, digits) {
			continue
		}
		for _, m := range p.re.FindAllSubmatchIndex(part, -1) {
			for i := range m {
				if m[i] >= 0 {
					m[i] += begin
				}
			}
			from, to := p.trimMatch(s.left, m[0], m[1])
			if !isBounded(s.left, from, to) || touchesRedacted(s.f.Text, trimSpaces(s.left, m[0], m[1])) {
				continue
			}
			groups := make([]string, len(m)/2)
			for i := range groups {
				if m[2*i] >= 0 && m[2*i] < to {
					groups[i] = string(s.left[m[2*i]:min(m[2*i+1], to)])
				}
			}
			if id, ok := p.read(groups); ok {
				id.Type = p.typ
				s.claimRange(id, from, to)
			}
		}
	}
}

func (s *textScan) claimNames(names []string) {
	low := LowerASCII(s.left)
	for _, name := range names {
		for _, at := range bytesOf(name, low) {
			if isBounded(s.left, at, at+len(name)) && !inAddress(s.left, s.f.Text, at) {
				s.claimRange(Identifier{Type: TypeName, Key: "name:" + name}, at, at+len(name))
				copy(low[at:], s.left[at:at+len(name)])
			}
		}
	}
}

// inAddress reports whether a match continues a URL that ended at a character beyond ASCII.
func inAddress(left []byte, text string, at int) bool {
	return at > 1 && strings.IndexByte("/=&?#%", text[at-1]) >= 0 && (left[at-1] == taken || left[at-2] == taken)
}

func touchesRedacted(text string, at [2]int) bool {
	return strings.HasPrefix(text[at[1]:], redact.Mark) || strings.HasSuffix(text[:at[0]], redact.Mark)
}

func trimSpaces(text []byte, from, to int) [2]int {
	for from < to && text[from] == ' ' {
		from++
	}
	for to > from && text[to-1] == ' ' {
		to--
	}
	return [2]int{from, to}
}

func bytesOf(part string, text []byte) []int {
	var at []int
	for i := 0; part != ""; {
		n := bytes.Index(text[i:], []byte(part))
		if n < 0 {
			break
		}
		at, i = append(at, i+n), i+n+len(part)
	}
	return at
}

// LowerASCII keeps the length, unlike bytes.ToLower.
func LowerASCII(text []byte) []byte {
	low := bytes.Clone(text)
	for i, c := range low {
		if 'A' <= c && c <= 'Z' {
			low[i] = c + 'a' - 'A'
		}
	}
	return low
}

// Only ASCII has bounds: Chinese adjoins identifiers without a blank.
func isBounded(text []byte, from, to int) bool {
	if from >= to {
		return false
	}
	if from > 0 && isWord(text[from]) {
		before := text[from-1]
		if isWord(before) && (before != 'T' || from < 2 || text[from-2] != taken) { // 2026-03-05T10:30
			return false
		}
		if (before == '.' || before == ',') && from > 1 && isNum(text[from-2]) && isNum(text[from]) {
			return false
		}
	}
	if to < len(text) && isWord(text[to-1]) {
		if isWord(text[to]) && (text[to] != 'T' || to+1 >= len(text) || !isNum(text[to+1])) {
			return false
		}
		if (text[to] == '.' || text[to] == ',') && to+1 < len(text) && isNum(text[to-1]) && isNum(text[to+1]) {
			return false
		}
	}
	return true
}

// ContainsAlone reports whether a text contains an identifier, not inside a longer one. Both are in lower case.
func ContainsAlone(text []byte, part string) bool {
	for _, at := range bytesOf(part, text) {
		if standsAlone(text, at, at+len(part)) {
			return true
		}
	}
	return false
}

func standsAlone(text []byte, from, to int) bool {
	if from > 0 && isWord(text[from]) {
		v := text[from-1] == 'v' && isNum(text[from]) && (from == 1 || !isWord(text[from-2])) // v1.2.3
		if isWord(text[from-1]) && !v || from > 1 && strings.IndexByte("-_.,@", text[from-1]) >= 0 && isWord(text[from-2]) {
			return false
		}
	}
	if to < len(text) && isWord(text[to-1]) {
		if isWord(text[to]) || to+1 < len(text) && strings.IndexByte("-_.,:/?#=&@%+", text[to]) >= 0 && isWord(text[to+1]) {
			return false
		}
	}
	return true
}

func isNum(c byte) bool { return '0' <= c && c <= '9' }

func isWord(c byte) bool {
	return isNum(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
}

var codeRE = regexp.MustCompile("`([!-_a-~][ -_a-~]{1,78}[!-_a-~])`")

// looksLikeCode distinguishes a name in a program from an emphasized word.
func looksLikeCode(s string) bool {
	return strings.ContainsAny(s, "_./=(){}[]$<>:0123456789") || strings.Contains(s, "-") ||
		strings.ContainsFunc(s[1:], unicode.IsUpper) && strings.ToUpper(s) != s
}

// NameList prepares names for [FindWithNames]: the longest first, so that 张伟 is not found in 张伟明. Single characters
// and numbers are no names.
func NameList(nicks []string) []string {
	var names []string
	for _, n := range nicks {
		name := string(LowerASCII([]byte(strings.TrimSpace(Fold(n).Text))))
		if utf8.RuneCountInString(name) >= 2 && strings.ContainsFunc(name, unicode.IsLetter) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return names
}
