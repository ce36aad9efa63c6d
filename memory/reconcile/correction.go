package reconcile

import (
	"slices"
	"strings"

	"ebb/memory/classify"
	"ebb/memory/text"
)

// nearShare is the share of common trigrams of near duplicates.
const nearShare = 0.85

var (
	// fillers may differ in two wordings of one fact.
	fillers = text.WordSet(`的 了 是 在 将 把 就 也 都 已 经 着 过 得 地 和 与 及 并 而 且 呢 吗 啊 吧 嘛 哦 之 这 那 个 位 为 于 由
		a an the is are was were be been being will would shall has have had do does did to of in on at for by with as and
		that this it its then so also very just been their his her our my your`)
	// Facts that differ in one of turns are not the same.
	turns = text.WordSet(`不 没 未 无 非 勿 莫 否 别 前 后 上 下 左 右 东 西 南 北 早 晚 大 小 多 少 零 一 二 两 三 四 五 六 七 八 九 十
		百 千 万 亿 半 日 not no never none without cannot can't don't doesn't didn't won't isn't aren't wasn't before after
		monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september
		october november december one two three four five six seven eight nine ten first second third last next`)
)

// addsNothing reports whether a stored content has all words of a similar new one in order, and else no number or
// turn.
func addsNothing(content, stored string) bool {
	said, has := dropFillers(content), dropFillers(stored)
	at := 0
	for _, t := range has {
		switch {
		case at < len(said) && said[at] == t:
			at++
		case text.HasDigit(t) || turns[t]:
			return false
		}
	}
	return at == len(said)
}

func dropFillers(body string) []string {
	return slices.DeleteFunc(text.Tokenize(body), func(t string) bool { return fillers[t] && !turns[t] })
}

// A sentence with a mark corrects an earlier one.
var marks = []string{
	"更正", "纠正", "改为", "改成", "改到", "改在", "换成", "换到", "调整为", "调整到", "推迟到", "提前到", "变更为", "变成", "不再", "现在是", "现在改",
	"correction", "actually", "instead", "no longer", "not anymore", "any more", "changed to", "moved to", "is now", "are now", "now lives",
	"now works", "postponed to", "rescheduled to",
}

func hasMark(content string) bool {
	return markAt(text.Fold(content)) >= 0
}

// The score 0 is no correction. The marked content must repeat the text before the stored value, and state another
// value.
func scoreCorrection(content, stored string) float64 {
	if strings.ContainsAny(strings.TrimRight(stored, "。.;；!！ "), "。；;！!") || strings.Contains(stored, ". ") {
		return 0 // one of its statements at most is corrected
	}
	old, now := text.Tokenize(stored), text.Tokenize(content)
	at := valueAt(old)
	about, value := contentTokens(old[:at]), contentTokens(old[at:])
	said := map[string]bool{}
	for _, t := range now {
		said[t] = true
	}
	for t := range about {
		if !said[t] {
			return 0
		}
	}
	if !sameSubject(content, about) {
		return 0
	}
	if !namesSubject(about) && (!hasNumber(value) || !hasNumber(contentTokens(now))) {
		return 0
	}
	shared := 0
	terms, spoken := text.Terms(old[:at]), text.Terms(now)
	for t := range terms {
		if spoken[t] {
			shared++
		}
	}
	if 2*shared < len(terms) {
		return 0
	}
	return float64(shared) + text.Jaccard(terms, spoken)
}

// A new train number corrects only the old one. Only the clause with the mark counts; others may give the reason.
func sameSubject(content string, about map[string]bool) bool {
	bare := false // the clause before is a mark and nothing else
	clauses := clausesOf(text.Fold(content))
	for i, clause := range clauses {
		at := markAt(clause)
		counts := at >= 0 || bare || i+1 < len(clauses) && markAt(strings.TrimSpace(clauses[i+1])) == 0
		if at >= 0 {
			clause = clause[:at]
		}
		tokens := text.Tokenize(clause)
		clauseSubject := contentTokens(tokens[:valueAt(tokens)])
		bare = at >= 0 && len(clauseSubject) == 0
		if counts && len(clauseSubject) > 0 && text.Within(clauseSubject, about) {
			return true
		}
	}
	return false
}

func subjectOf(content string) map[string]bool {
	folded := text.Fold(content)
	if at := markAt(folded); at > 0 {
		folded = folded[:at]
	}
	tokens := text.Tokenize(folded)
	return contentTokens(tokens[:valueAt(tokens)])
}

// IsValue reports whether a person is the value of a content's key, such as the owner of a thing, and not its subject.
func IsValue(name, content, key string) bool {
	named, keyed := contentTokens(text.Tokenize(name)), contentTokens(text.Tokenize(key))
	about, rest := subjectOf(content), contentTokens(text.Tokenize(withoutMarks(content)))
	if len(named) == 0 || !text.Within(named, contentTokens(text.Tokenize(content))) {
		return false
	}
	for t := range named {
		if about[t] { // it stands at the beginning, if anywhere
			about = nil
		}
		delete(rest, t)
	}
	if len(about) > 0 && text.Within(about, keyed) {
		return true
	}
	said := 0
	for t := range rest {
		switch {
		case keyed[t]:
			said++
		case !sharesPrefix(t, keyed):
			return false
		}
	}
	return said > 0
}

// Words without a subject: many things are one, or it is the speaker.
var (
	kinds = text.WordSet(`项目 系统 服务 模块 平台 团队 小组 部门 产品 公司 环境 版本 办公室 我们 你们 他们 咱们 大家 本组 本次 这次 最终 最新 新的 project system service
		module platform team group product company department environment version office final latest new current currently we you they i he she`)
	persons = text.WordSet("我 你 他 她 它 咱 该 本")
)

// Chinese terms are pairs of characters, and of the shorter one half must differ: 测试环境 and 生产环境 are two.
func ofTwoThings(a, b, key string) bool {
	x, y := besidesKey(a, key), besidesKey(b, key)
	if len(x) == 0 || len(y) == 0 {
		return false
	}
	shared := 0
	for t := range x {
		switch {
		case y[t] && !text.IsWide(t):
			return false
		case y[t]:
			shared++
		}
	}
	return 2*shared < min(len(x), len(y))
}

// besidesKey are the terms before the value, without the key's; empty if the value is not the key's.
func besidesKey(content, key string) map[string]bool {
	keyed := contentTokens(text.Tokenize(key))
	for _, clause := range clausesOf(withoutNow(classify.TrimLead(content))) {
		at := markAt(clause)
		if at == 0 {
			continue
		}
		if at > 0 {
			clause = clause[:at]
		}
		tokens := text.Tokenize(clause)
		end := valueAt(tokens)
		if tokens = tokens[:end]; at < 0 && end == len(text.Tokenize(clause)) || !slices.ContainsFunc(tokens, func(t string) bool { return keyed[t] }) {
			continue
		}
		for i, t := range tokens {
			if fillers[t] || copulas[t] || keyed[t] || persons[t] {
				tokens[i] = ""
			}
			for n := min(3, len(tokens)-i); n > 0; n-- { // a Chinese word is a token for each character
				if kinds[strings.Join(tokens[i:i+n], "")] {
					clear(tokens[i : i+n])
				}
			}
		}
		terms := text.Terms(tokens)
		delete(terms, "")
		return terms
	}
	return nil
}

// "owns" and "owner" share one.
func sharesPrefix(word string, others map[string]bool) bool {
	const stem = 3
	for o := range others {
		if len(word) >= stem && strings.HasPrefix(o, word[:stem]) && !text.IsWide(word) {
			return true
		}
	}
	return false
}

func withoutMarks(content string) string {
	text := withoutNow(content)
	for _, m := range marks {
		text = strings.ReplaceAll(text, m, " ")
	}
	return text
}

// The words say only that a fact holds by now.
func withoutNow(content string) string {
	return nowWords.Replace(text.Fold(content))
}

var nowWords = strings.NewReplacer(" now ", " ", "现在", " ", "目前", " ")

func clausesOf(folded string) []string {
	return strings.FieldsFunc(folded, func(r rune) bool { return strings.ContainsRune(",;:，；：", r) })
}

func markAt(folded string) int {
	first := -1
	for _, m := range marks {
		if at := strings.Index(folded, m); at >= 0 && (first < 0 || at < first) {
			first = at
		}
	}
	return first
}

var copulas = text.WordSet(`是 为 在 叫 定 到 于 改 由 is are was were in on at by to has have will become call name equal`)

// The value is behind the first copula after two meaningful tokens, or the end.
func valueAt(tokens []string) int {
	before := 0
	for i, t := range tokens {
		switch {
		case copulas[t] && before >= 2:
			return i
		case !fillers[t]:
			before++
		}
	}
	return len(tokens)
}

func contentTokens(tokens []string) map[string]bool {
	set := map[string]bool{}
	for _, t := range tokens {
		if !fillers[t] && !copulas[t] {
			set[t] = true
		}
	}
	return set
}

// Two Latin words or four Chinese characters are enough.
func namesSubject(about map[string]bool) bool {
	n := 0
	for t := range about {
		if text.IsWide(t) {
			n++
		} else {
			n += 2
		}
	}
	return n >= 4
}

// Chinese numbers and names of days count too.
func hasNumber(tokens map[string]bool) bool {
	for t := range tokens {
		if text.HasDigit(t) || turns[t] && !strings.ContainsFunc(t, func(r rune) bool { return strings.ContainsRune("不没未无非勿莫否别", r) }) {
			return true
		}
	}
	return false
}
