package erasure

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"ebb/sessions"
)

// A nick is chosen freely. So only one of this length is searched for, and as a whole word.
const (
	minNickHan   = 2
	minNickLatin = 4
)

// nameIn is empty for a nick too short to identify a person.
func nameIn(nick string) string {
	name := strings.ToLower(sessions.Nick(nick))
	han, latin := 0, 0
	for _, r := range name {
		if unicode.Is(unicode.Han, r) {
			han++
		} else if unicode.Is(unicode.Latin, r) {
			latin++
		}
	}
	if han < minNickHan && latin < minNickLatin {
		return ""
	}
	return name
}

// containsName expects a lower-case text.
func containsName(text, name string) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], name)
		if i < 0 {
			return false
		}
		start, end := at+i, at+i+len(name)
		before, _ := utf8.DecodeLastRuneInString(text[:start])
		first, _ := utf8.DecodeRuneInString(name)
		last, _ := utf8.DecodeLastRuneInString(name)
		after, _ := utf8.DecodeRuneInString(text[end:])
		shape := shapeOf(name)
		if endsName(first, before, before == '@', shape, beforeNames) && endsName(last, after, false, shape, afterNames) {
			return true
		}
		at = end
	}
}

// Chinese has no blanks: a name continues into other words, and a common word would match in every text.
func endsName(outer, beside rune, apart bool, shape nameShape, joining string) bool {
	switch {
	case apart || beside == utf8.RuneError:
		return true
	case unicode.Is(unicode.Han, outer):
		return !unicode.Is(unicode.Han, beside) || shape == longName ||
			shape == shortName && strings.ContainsRune(joining, beside)
	default:
		return !unicode.Is(unicode.Latin, beside) && !unicode.IsDigit(beside) && !strings.ContainsRune("_-/\\@", beside)
	}
}

type nameShape int

const (
	otherNick nameShape = iota
	shortName           // a surname and one character
	longName            // a surname and two characters: no common word
)

func shapeOf(name string) nameShape {
	rs := []rune(name)
	for _, r := range rs {
		if !unicode.Is(unicode.Han, r) {
			return otherNick
		}
	}
	single := strings.ContainsRune(surnames, rs[0])
	switch double := len(rs) > 2 && strings.Contains(doubleSurnames, string(rs[:2])+" "); {
	case len(rs) == 2 && single:
		return shortName
	case len(rs) == 3 && (single || double), len(rs) == 4 && double:
		return longName
	}
	return otherNick
}

const (
	surnames = "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林郑谢罗梁宋唐许韩冯邓曹彭曾肖田董袁潘蒋蔡余杜叶程苏魏吕丁沈姚卢姜崔钟谭陆汪范金石廖贾" +
		"夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严覃武戴莫孔汤"
	doubleSurnames = "欧阳 司马 上官 诸葛 夏侯 东方 皇甫 尉迟 公孙 慕容 令狐 司徒 "

	// Neighbours of a two-character word that is a name.
	beforeNames = "和与跟给对由是让叫请问的了在到把被为找及或替约帮像说称见按据从"
	afterNames  = "的是说在和与跟了也都将会要有问被把给对已曾负请想去来到提做写建认表同答发参管没不又再还先能可应需及或等让"
)
