package identify

import (
	"bytes"
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ebb/sessions/rules"
)

type formPattern struct {
	typ Type
	// hints are lower-case parts, one of which every match contains, for a fast search. Forms without hints have a
	// digit.
	hints []string
	re    *regexp.Regexp
	trim  string // bytes that a match may contain but not end with
	match string
	miss  string // a counterexample
	// read makes an identifier of a match and its groups; false for none.
	read func(m []string) (Identifier, bool)
}

var monthNames = []string{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"}

// Only URLs, addresses, paths and percentages may lack digits.
func (p formPattern) mayContain(low []byte, digits int) bool {
	least := 1
	switch p.typ {
	case TypeURL, TypeEmail, TypePath, TypePercent:
		least = 0
	case TypePhone:
		least = minPhone
	}
	return digits >= least &&
		(len(p.hints) == 0 || slices.ContainsFunc(p.hints, func(h string) bool { return bytes.Contains(low, []byte(h)) }))
}

// minPhone is in digits.
const minPhone = 8

func (p formPattern) trimMatch(text []byte, from, to int) (begin, end int) {
	from = trimSpaces(text, from, to)[0]
	for to > from && (text[to-1] == ' ' || strings.IndexByte(p.trim, text[to-1]) >= 0) {
		if m := text[from:to]; text[to-1] == ')' && bytes.Count(m, []byte("(")) >= bytes.Count(m, []byte(")")) {
			break // it closes an inner bracket
		}
		to--
	}
	return from, to
}

//go:embed patterns.tsv
var patternLines string

// The order is that of the search.
var patterns = newPatterns(rules.Read(patternLines).All())

func newPatterns(all []rules.Rule) []formPattern {
	var list []formPattern
	for _, r := range all {
		reader, hints, trim := r.Columns[0], r.Columns[1], r.Columns[2]
		p := formPattern{typ: Type(r.List), read: readers[reader], match: r.Match, miss: r.Miss, re: regexp.MustCompile(r.Expr)}
		if p.read == nil {
			p.read = readKeyed(r.List + ":")
		}
		if hints != "none" {
			p.hints = strings.Fields(hints)
		}
		if trim != "none" {
			p.trim = trim
		}
		list = append(list, p)
	}
	return list
}

// Rules without a reader make the key of the text itself.
var readers = map[string]func([]string) (Identifier, bool){
	"url": readURL, "date": readDate, "englishDate": readEnglishDate, "time": readTime, "clock": readClock, "money": readMoney,
	"percent": readPercent, "version": readVersion, "phone": readPhone, "number": readNumber, "id": readID, "fraction": readFraction,
}

func readKeyed(kind string) func([]string) (Identifier, bool) {
	return func(m []string) (Identifier, bool) {
		return Identifier{Key: kind + strings.ToLower(strings.TrimRight(m[0], "/"))}, true
	}
}

func readURL(m []string) (Identifier, bool) {
	_, rest, ok := strings.Cut(m[0], "://")
	return Identifier{Key: "url:" + strings.ToLower(strings.TrimRight(m[0], "/"))}, strings.Contains(m[0], ".") || ok && rest != ""
}

// Date is the identifier of a day, or of a month if day is 0. Year 0 is unknown.
func Date(year, month, day int) (Identifier, bool) {
	if month < 1 || month > 12 || day < 0 || day > 31 {
		return Identifier{}, false
	}
	md := fmt.Sprintf("date:%02d-%02d", month, day)
	switch {
	case day == 0:
		return Identifier{Key: fmt.Sprintf("date:%04d-%02d", year, month)}, year > 0
	case year == 0:
		return Identifier{Key: md}, true
	}
	return Identifier{Key: fmt.Sprintf("date:%04d-%02d-%02d", year, month, day), Loose: md}, true
}

func readDate(m []string) (Identifier, bool) {
	for i := 1; i+2 < len(m); i += 3 {
		if m[i+1] != "" {
			return Date(parseNumber(m[i]), parseNumber(m[i+1]), parseNumber(m[i+2]))
		}
	}
	return Identifier{}, false
}

// readEnglishDate reads day, month, day, year; one day is empty.
func readEnglishDate(m []string) (Identifier, bool) {
	day := parseNumber(m[1] + m[3])
	if day == 0 {
		return Identifier{}, false
	}
	return Date(parseNumber(m[4]), slices.Index(monthNames, m[2])+1, day)
}

func readFraction(m []string) (Identifier, bool) {
	id, ok := Date(0, parseNumber(m[2]), parseNumber(m[3]))
	id.Weak = true
	return id, ok && parseNumber(m[3]) > 0
}

func readTime(m []string) (Identifier, bool) {
	hour, minute := parseNumber(m[2]), parseNumber(m[3])
	key := func(h int) string { return fmt.Sprintf("time:%02d:%02d", h%24, minute) }
	switch p := strings.ToLower(m[4]); {
	case p == "p" || m[1] == "下午" || m[1] == "傍晚" || m[1] == "晚上" || m[1] == "晚" || m[1] == "中午" && hour < 11:
		if hour < 12 {
			hour += 12
		}
	case p == "a" || m[1] == "凌晨":
		hour %= 12
	case m[1] == "" && 0 < hour && hour <= 12 && !strings.HasPrefix(m[2], "0"):
		return Identifier{Key: key(hour), Loose: key(hour%12 + 12)}, true
	}
	return Identifier{Key: key(hour)}, true
}

// 3点 alone is weak: it may mean three remarks.
func readClock(m []string) (Identifier, bool) {
	minute := m[3]
	if m[4] != "" {
		minute = "30"
	}
	id, ok := readTime([]string{m[0], m[1], m[2], minute, ""})
	id.Weak = m[1] == "" && strings.HasSuffix(strings.TrimSpace(m[0]), "点")
	return id, ok
}

var currencies = map[string]string{
	"¥": "cny", "元": "cny", "块钱": "cny", "rmb": "cny", "cny": "cny", "人民币": "cny", "yuan": "cny",
	"$": "usd", "us$": "usd", "usd": "usd", "美元": "usd", "美金": "usd", "dollar": "usd", "dollars": "usd",
	"hk$": "hkd", "港币": "hkd", "€": "eur", "eur": "eur", "欧元": "eur", "£": "gbp",
}

// readMoney reads currency, amount, scale, currency. The scale stays part of the amount: 3.5万 may be rounded.
func readMoney(m []string) (Identifier, bool) {
	amount := "money:" + plainNumber(m[2]) + strings.ToLower(m[3])
	cur := currencies[strings.ToLower(m[1]+m[4])]
	if cur == "" {
		return Identifier{Key: amount}, true
	}
	return Identifier{Key: amount + ":" + cur, Loose: amount}, true
}

func readPercent(m []string) (Identifier, bool) {
	return Identifier{Key: "percent:" + plainNumber(m[2]+m[4])}, true
}

func readVersion(m []string) (Identifier, bool) {
	return Identifier{Key: "version:" + strings.ToLower(strings.TrimRight(m[1]+m[2], "."))}, true
}

func readPhone(m []string) (Identifier, bool) {
	d := digitsOf(m[0])
	if len(d) == 13 && strings.HasPrefix(d, "861") {
		d = d[2:]
	}
	return Identifier{Key: "num:" + d}, len(d) >= minPhone
}

// Six digits are the minimum.
func readNumber(m []string) (Identifier, bool) {
	n := plainNumber(m[1])
	whole, _, _ := strings.Cut(n, ".")
	return Identifier{Key: "num:" + n}, len(whole) >= 6
}

var ticketRE = regexp.MustCompile(`^[A-Z][A-Z0-9]*(?:[-_][A-Za-z0-9]+)*[-_]\d+$`)

// readID accepts ticket keys, hexadecimal strings, UUIDs and long mixtures of letters and digits.
func readID(m []string) (Identifier, bool) {
	s := m[0]
	d := len(digitsOf(s))
	letters := strings.ContainsFunc(s, isLetter)
	hex := d > 0 && len(s) >= 8 && strings.Trim(strings.ToLower(s), "0123456789abcdef-") == ""
	ok := ticketRE.MatchString(s) || letters && (hex || len(s) >= 8 && d >= 4)
	return Identifier{Key: "id:" + strings.ToLower(s)}, ok
}

// plainNumber drops separators and trailing zeros.
func plainNumber(n string) string {
	n = strings.ReplaceAll(n, ",", "")
	if strings.Contains(n, ".") {
		n = strings.TrimRight(strings.TrimRight(n, "0"), ".")
	}
	return n
}

func digitsOf(s string) string {
	return strings.Map(func(r rune) rune {
		if isDigit(r) {
			return r
		}
		return -1
	}, s)
}

// parseNumber is 0 for no number.
func parseNumber(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}
