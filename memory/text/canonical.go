package text

import (
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Canonical folds compatible forms (NFKC), capitals, traditional characters that the patterns know, and quotes. It
// drops invisible characters, which hide words from a search. White space becomes one blank, or none between Chinese
// characters.
func Canonical(text string) string {
	text = norm.NFKC.String(strings.ToValidUTF8(text, " "))
	var b strings.Builder
	b.Grow(len(text))
	var last rune // written; a blank is held back until the next character is known
	blank := false
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			blank = true
			continue
		case isInvisible(r):
			continue
		}
		r = unicode.ToLower(r)
		if s, ok := simplified[r]; ok {
			r = s
		}
		if blank && last != 0 && (!unicode.Is(unicode.Han, last) || !unicode.Is(unicode.Han, r)) {
			b.WriteByte(' ')
		}
		blank, last = false, r
		b.WriteRune(r)
	}
	return b.String()
}

// Normalization puts a joiner between too many marks.
func isInvisible(r rune) bool {
	switch {
	case r == 0x034f, r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0, r == 0x2800:
		return true
	case 0xfe00 <= r && r <= 0xfe0f, 0xe0000 <= r && r <= 0xe01ef:
		return true
	}
	return unicode.Is(unicode.Cf, r) || unicode.IsControl(r)
}

// spelledRE finds "i g n o r e" and "忽-略-规-则".
var spelledRE = regexp.MustCompile(`(?:(?:^|[^\p{L}\p{N}])\p{L}|\p{Han})(?:[^\p{L}\p{N}]{1,3}\p{L}){3,}`)

// JoinSpelled appends to a folded text the words that it spells letter by letter.
func JoinSpelled(folded string) string {
	runs := spelledRE.FindAllString(folded, -1)
	if len(runs) == 0 {
		return folded
	}
	var b strings.Builder
	b.WriteString(folded)
	for _, run := range runs {
		b.WriteByte('\n')
		for _, r := range run {
			if unicode.IsLetter(r) {
				b.WriteRune(r)
			}
		}
	}
	return b.String()
}

var simplified = func() map[rune]rune {
	from, to := []rune("規則記從現對見讓憶視無違應該總們後過說話請幫決負責確認為個給會許絕條設變號總統權體員組問誰麼嗎時間題複還醫銀證護電郵職薪資"+
		"聽從執準禁漏訴別啟開關閉隨戶術診斷癌憂鬱懷獎錢萬億寫這裡網頁禮週歡愛習慣單議檔發佈約規週點‘’“”´"),
		[]rune("规则记从现对见让忆视无违应该总们后过说话请帮决负责确认为个给会许绝条设变号总统权体员组问谁么吗时间题复还医银证护电邮职薪资"+
			"听从执准禁漏诉别启开关闭随户术诊断癌忧郁怀奖钱万亿写这里网页礼周欢爱习惯单议档发布约规周点''\"\"'")
	if len(from) != len(to) {
		panic("memory: the tables of characters differ in length")
	}
	m := make(map[rune]rune, len(from))
	for i, r := range from {
		m[r] = to[i]
	}
	return m
}()

// Words replaces other characters than letters and figures by one blank, or by nothing next to a Chinese character.
func Words(folded string) string {
	var b strings.Builder
	var last rune
	gap := false
	for _, r := range folded {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) {
			gap = true
			continue
		}
		if gap && last != 0 && !unicode.Is(unicode.Han, last) && !unicode.Is(unicode.Han, r) {
			b.WriteByte(' ')
		}
		gap, last = false, r
		b.WriteRune(r)
	}
	if !strings.ContainsFunc(b.String(), unicode.IsLetter) {
		return ""
	}
	return b.String()
}

// DropInvisible drops invisible characters except line ends.
func DropInvisible(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && isInvisible(r) {
			return -1
		}
		return r
	}, text)
}
