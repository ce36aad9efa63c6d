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
	TypeID      Type = "id" // six digits and more, hexadecimal, UUIDs, ticket keys
	TypePath    Type = "path"
	TypeHost    Type = "host" // an IP address, or a host with its port
	TypeVersion Type = "version"
	TypeMoney   Type = "money"
	TypePercent Type = "percent"
	TypeDate    Type = "date"
	TypeTime    Type = "time"
	TypeCode    Type = "code"
	TypeName    Type = "name"
)

// Identifier is something in a text that has to be told exactly or not at all.
type Identifier struct {
	Type Type
	Key  string // the same for every spelling of the same thing
	Text string // as it stood, in half-width letters

	Who     string // whose words it was in; empty where nobody's
	Seq     int64  // of the event; 0 where it was in a summary
	Context string // what stood around it, on one line

	// loose is a second key for the spellings that say less: a day without its year, an hour without its half of the
	// day, an amount without its currency.
	Loose string
	// weak: the form is too common to insist on. 3/5 is a day or a score.
	Weak     bool
	From, To int // bytes of the text that it stands in
}

// Identify lists the identifiers of a text, in the order in which they stand there. It finds no names: only a roster
// tells who is somebody.
func Find(text string) []Identifier { return FindWithNames(Fold(text), nil) }

// taken is what the place of an identifier is filled with, so that nothing is found twice: no letter, digit or sign.
const taken = 0x01

// identify lists the identifiers of a text, and the names of a roster (as [roster] makes it) in it.
func FindWithNames(f Folded, names []string) []Identifier { return identifyIn(f, names, islands) }

// identifyIn looks for forms in the pieces of the text only.
func identifyIn(f Folded, names []string, pieces func(text []byte) [][2]int) []Identifier {
	s := scan{f: f, left: []byte(f.Text)}
	for _, m := range bytesOf(redact.Mark, s.left) { // what touches it is half a credential
		s.claim(Identifier{Key: redact.Mark}, m, m+len(redact.Mark))
	}
	hidden := len(s.found)
	for _, at := range pieces(s.left) {
		s.shapes(at[0], at[1])
	}
	for _, m := range codeRE.FindAllSubmatchIndex(s.left, -1) {
		if text := string(s.left[m[2]:m[3]]); looksLikeCode(text) {
			s.claim(Identifier{Type: TypeCode, Key: "code:" + strings.ToLower(text), Text: text}, m[0], m[1])
		}
	}
	s.names(names)
	found := s.found[hidden:]
	slices.SortFunc(found, func(a, b Identifier) int { return a.From - b.From })
	return found
}

// scan is one text under way: what is found is taken out of what is left.
type scan struct {
	f     Folded
	left  []byte
	found []Identifier
}

func (s *scan) claim(id Identifier, from, to int) {
	id.From, id.To = s.f.at[from], s.f.at[to]
	if id.Text == "" {
		id.Text = s.f.Text[from:to]
	}
	for i := from; i < to; i++ {
		s.left[i] = taken
	}
	s.found = append(s.found, id)
}

// inForms are the characters beyond ASCII that a form may hold: units.
var inForms = func() map[rune]bool {
	in := map[rune]bool{}
	for _, p := range patterns {
		for _, r := range p.re.String() {
			in[r] = r >= utf8.RuneSelf
		}
	}
	return in
}()

// islands lists the pieces of a text, as pairs of byte offsets, that no form goes beyond: of characters which forms hold, and of
// these the words that tell something, with those around them. They are few and short, most of all in Chinese: to search them
// is many times as fast as to search the text.
func islands(text []byte) [][2]int {
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
		all = withTelling(all, text[:to], from)
		from = to
		if from < len(text) {
			_, n := utf8.DecodeRune(text[from:])
			from += n
		}
	}
	return all
}

// formReach is how many words a form may go beyond the one that tells of it, as 3rd goes on in "3rd of May".
const formReach = 2

// withTelling adds the pieces of a text, from a byte on, that stand around words which tell something.
func withTelling(all [][2]int, text []byte, from int) [][2]int {
	var starts []int // of the words so far that belong to no piece
	open := -1       // how many words more the last piece may go on for; -1: it has ended
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
		case tells(text[start:at]) && open >= 0:
			all[len(all)-1][1], open, starts = at, formReach, nil
		case tells(text[start:at]):
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

// tells reports whether a word may be of a form: it has a digit, a sign of addresses and paths, or a point within it.
func tells(word []byte) bool {
	for i, c := range word {
		if isNum(c) || c == '/' || c == '@' || c == '\\' || c == '.' && i+1 < len(word) {
			return true
		}
	}
	return false
}

// shapes finds what the patterns tell by its form, in a piece of the text.
func (s *scan) shapes(begin, end int) {
	part := s.left[begin:end]
	low, digits := LowerASCII(part), 0 // of what is left at the beginning: it only gets less
	for _, c := range low {
		if isNum(c) {
			digits++
		}
	}
	for _, p := range patterns {
		if !p.maybe(low, digits) {
			continue
		}
		for _, m := range p.re.FindAllSubmatchIndex(part, -1) {
			for i := range m {
				if m[i] >= 0 {
					m[i] += begin
				}
			}
			from, to := p.cut(s.left, m[0], m[1])
			if !bounded(s.left, from, to) || touchesRedacted(s.f.Text, unspaced(s.left, m[0], m[1])) {
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
				s.claim(id, from, to)
			}
		}
	}
}

// names finds the names of a roster.
func (s *scan) names(names []string) {
	low := LowerASCII(s.left)
	for _, name := range names {
		for _, at := range bytesOf(name, low) {
			if bounded(s.left, at, at+len(name)) && !inAddress(s.left, s.f.Text, at) {
				s.claim(Identifier{Type: TypeName, Key: "name:" + name}, at, at+len(name))
				copy(low[at:], s.left[at:at+len(name)])
			}
		}
	}
}

// inAddress reports whether what begins at a byte goes on where a URL ended only because it is not ASCII.
func inAddress(left []byte, text string, at int) bool {
	return at > 1 && strings.IndexByte("/=&?#%", text[at-1]) >= 0 && (left[at-1] == taken || left[at-2] == taken)
}

func touchesRedacted(text string, at [2]int) bool {
	return strings.HasPrefix(text[at[1]:], redact.Mark) || strings.HasSuffix(text[:at[0]], redact.Mark)
}

// unspaced is a piece of a text without the blanks at its ends.
func unspaced(text []byte, from, to int) [2]int {
	for from < to && text[from] == ' ' {
		from++
	}
	for to > from && text[to-1] == ' ' {
		to--
	}
	return [2]int{from, to}
}

// bytesOf lists where part stands in text, without overlap.
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

// lowerASCII is a text with its ASCII letters in lower case: as long as before, which bytes.ToLower does not promise.
func LowerASCII(text []byte) []byte {
	low := bytes.Clone(text)
	for i, c := range low {
		if 'A' <= c && c <= 'Z' {
			low[i] = c + 'a' - 'A'
		}
	}
	return low
}

// bounded reports whether what stands between two bytes of a text is no part of a longer word or number. Only ASCII has
// bounds: Chinese stands next to identifiers without a blank.
func bounded(text []byte, from, to int) bool {
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

// containsAlone reports whether an identifier stands in a text and is no part of a longer one. Both are in lower case.
func ContainsAlone(text []byte, part string) bool {
	for _, at := range bytesOf(part, text) {
		if alone(text, at, at+len(part)) {
			return true
		}
	}
	return false
}

// alone reports whether what stands between two bytes of a text is an identifier of its own there, and not the
// beginning or the end of a longer one.
func alone(text []byte, from, to int) bool {
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

// looksLikeCode tells a name in a program from a word that is only set off.
func looksLikeCode(s string) bool {
	return strings.ContainsAny(s, "_./=(){}[]$<>:0123456789") || strings.Contains(s, "-") ||
		strings.ContainsFunc(s[1:], unicode.IsUpper) && strings.ToUpper(s) != s
}

// roster makes a list of names that [identify] can look for: folded, in lower case, the longest first, so that 张伟 is
// not found in 张伟明. A single character or a number is nobody's name.
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
