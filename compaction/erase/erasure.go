package erase

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"ebb/compaction/summarize"
	"ebb/memory/text"
	"ebb/sessions"
)

// Erasure removes from summaries the content of erased events. Summaries have words of their own, so a line is known
// by its pieces: words, numbers, identifiers and pairs of Chinese characters. One piece that only erased events had is
// enough, else half of a clause. The zero value is not usable: see [New].
type Erasure struct {
	pieces  map[string]int  // number of each piece of the erased texts
	clauses []int           // number of pieces of each clause
	having  [][]int         // clauses of each piece
	known   map[string]bool // clauses, by their pieces
	kept    map[int64][]int // pieces that a kept event has too
	seqs    map[string]bool // numbers of the erased events
	words   int             // pieces of people's texts, by script
	han     int
}

// New returns an erasure of no events.
func New() *Erasure {
	return &Erasure{pieces: map[string]int{}, known: map[string]bool{}, kept: map[int64][]int{}, seqs: map[string]bool{}}
}

const (
	// clauseShare of a clause's pieces identifies it in a line.
	clauseShare = 0.5
	// maxLost is the share of lost lines above which a summary no longer covers its range.
	maxLost      = 0.5
	unlikeScript = 3
)

// AddSeq adds the number of an erased event, for lines that cite it.
func (e *Erasure) AddSeq(seq int64) { e.seqs[strconv.FormatInt(seq, 10)] = true }

// AddStatement adds a person's text in an erased event, or a fact from it.
func (e *Erasure) AddStatement(said string) {
	for _, clause := range strings.FieldsFunc(said, func(r rune) bool { return strings.ContainsRune("，,。.；;！!？?：:\n", r) }) {
		var ids []int
		for piece := range piecesOf(clause) {
			if utf8.RuneCountInString(piece) > 1 { // pairs contain single characters
				ids = append(ids, e.addPiece(piece))
			}
			if strings.ContainsFunc(piece, text.IsIdeograph) {
				e.han++
			} else {
				e.words++
			}
		}
		if slices.Sort(ids); len(ids) > 1 && !e.known[fmt.Sprint(ids)] {
			e.known[fmt.Sprint(ids)] = true
			for _, id := range ids {
				e.having[id] = append(e.having[id], len(e.clauses))
			}
			e.clauses = append(e.clauses, len(ids))
		}
	}
	e.AddEcho(said) // identifiers may span clauses
}

// AddEcho adds an erased answer, call or result. It may repeat kept texts.
func (e *Erasure) AddEcho(text string) {
	for piece := range piecesOf(text) {
		e.addPiece(piece)
	}
}

func (e *Erasure) addPiece(piece string) int {
	id, known := e.pieces[piece]
	if !known {
		id = len(e.pieces)
		e.pieces[piece] = id
		e.having = append(e.having, nil)
	}
	return id
}

// AddKept adds the text of a kept event, after all erased ones.
func (e *Erasure) AddKept(seq int64, text string) {
	found := map[int]bool{}
	eachPiece(text, func(piece []byte) {
		if id, known := e.pieces[string(piece)]; known && !found[id] { // this look-up does not allocate
			found[id] = true
			e.kept[seq] = append(e.kept[seq], id)
		}
	})
}

// Heal removes list items and sentences that repeat an erased event from a summary of the events first to last, and
// those for which also is true. left estimates tokens. If too much would go, or if the summary is in another script,
// the text is [sessions.ErasedText], and the range must be summarized again.
func (e *Erasure) Heal(summary string, tokens int, first, last int64, also func(line string) bool) (text string, left int) {
	switch text = e.healLines(summary, first, last, also); text {
	case "":
		return sessions.ErasedText, sessions.ErasedTokens
	case summary:
		return summary, tokens
	}
	return text, (tokens*len(text) + len(summary) - 1) / len(summary)
}

// healLines drops list items as a whole and prose by sentences. The result is empty if more than half went. It is empty too if no
// line matched and the scripts differ: then the words can't be compared.
func (e *Erasure) healLines(summary string, first, last int64, also func(line string) bool) string {
	shared := make([]bool, len(e.pieces))
	for seq, ids := range e.kept {
		if seq >= first && seq <= last {
			for _, id := range ids {
				shared[id] = true
			}
		}
	}
	known := false // matched by its words
	repeats := func(text string) bool {
		if also(text) || e.repeatsErased(text, shared) {
			known = true
			return true
		}
		return e.citesErased(text)
	}
	var kept []string
	lines, lost := 0, 0
	for line := range strings.SplitSeq(summary, "\n") {
		switch {
		case strings.TrimSpace(line) == "" || summarize.IsHeading(line):
			kept = append(kept, line)
			continue
		case !repeats(line):
			kept = append(kept, line)
			lines++
			continue
		case strings.HasPrefix(line, "#"), listLine.MatchString(line):
			lines, lost = lines+1, lost+1
			continue
		}
		var left []string
		for _, s := range sentences.FindAllString(line, -1) {
			if lines++; repeats(s) {
				lost++
			} else {
				left = append(left, s)
			}
		}
		if text := strings.TrimSpace(strings.Join(left, "")); text != "" && !repeats(text) {
			kept = append(kept, text)
		} else {
			lost += len(left)
		}
	}
	switch {
	case !known && e.inOtherScript(summary), float64(lost) > maxLost*float64(lines):
		return ""
	case lost == 0:
		return summary
	}
	return strings.Join(kept, "\n")
}

var (
	listLine  = regexp.MustCompile(`^\s*([-*•|]|\d+[.、)])`)
	sentences = regexp.MustCompile(`.*?(?:[。！？!?；;]+|\.(?:\s|$)|$)\s*`)
	cited     = regexp.MustCompile(`[-—] .*#(\d+)|#(\d+):`)
)

// citesErased reports whether a line names an erased event as its source, as audit.Heal writes it.
func (e *Erasure) citesErased(line string) bool {
	for _, m := range cited.FindAllStringSubmatch(line, -1) {
		if e.seqs[m[1]] || e.seqs[m[2]] {
			return true
		}
	}
	return false
}

func (e *Erasure) repeatsErased(line string, shared []bool) bool {
	has := map[int]int{} // matching pieces by clause
	for piece := range piecesOf(line) {
		id, known := e.pieces[piece]
		if !known {
			continue
		}
		if !shared[id] {
			return true
		}
		for _, clause := range e.having[id] {
			has[clause]++
		}
	}
	for clause, n := range has {
		if n > 1 && float64(n) >= clauseShare*float64(e.clauses[clause]) {
			return true
		}
	}
	return false
}

// inOtherScript reports a script whose words can't match.
func (e *Erasure) inOtherScript(summary string) bool {
	han, words := 0, 0
	for piece := range piecesOf(summary) {
		if strings.ContainsFunc(piece, text.IsIdeograph) {
			han++
		} else {
			words++
		}
	}
	return e.words >= unlikeScript && e.words > e.han && han > words || e.han >= unlikeScript && e.han > e.words && words > han
}

func piecesOf(text string) map[string]bool {
	set := map[string]bool{}
	eachPiece(text, func(piece []byte) { set[string(piece)] = true })
	return set
}

// Pieces may repeat. The bytes are valid during the call only.
func eachPiece(said string, see func(piece []byte)) {
	var last, pair []byte // last: the previous token, if only blanks follow it
	text.EachAtom(said, func(t []byte) {
		if len(t) == 0 {
			last = last[:0]
			return
		}
		r, _ := utf8.DecodeRune(t)
		switch {
		case text.IsIdeograph(r):
			if !common[string(t)] {
				see(t)
			}
		case isNumber(t):
			if len(t) >= 3 {
				see(t)
			}
		case utf8.RuneCount(t) >= 3 && !commonWords[string(t)]:
			see(t)
		}
		if len(last) > 0 && isPair(last, t) {
			pair = append(append(append(pair[:0], last...), ' '), t...)
			see(pair)
		}
		last = append(last[:0], t...)
	})
}

// Pairs are Chinese characters, or a number and its noun.
func isPair(a, b []byte) bool {
	if function[string(a)] || function[string(b)] || commonWords[string(a)] || commonWords[string(b)] {
		return false
	}
	x, _ := utf8.DecodeRune(a)
	y, _ := utf8.DecodeRune(b)
	return text.IsIdeograph(x) || text.IsIdeograph(y) || isNumber(a) != isNumber(b)
}

func isNumber(token []byte) bool { return token[0] >= '0' && token[0] <= '9' }

// Words and characters without meaning of their own. Characters of functionHan have none in a pair either.
const (
	functionHan = "的了是在我你您他她它们这那有和与就不也都吗呢吧啊呀个一把被给对到从为及或并且而但如则着过请让使其之所以"
	commonHan   = functionHan + "人来上下大中小去说要会可没好很多少天年月日时点分周今明昨后前里外再还只又已经于等将能开发现做用看想知道问答" +
		"记得需成定决确认完工作项目事情内容负责讨论提出表示建议安排计划进行更新使用处理相关信息今回复更改新旧" +
		"第二三四五六七八九十零两百千万号些什么怎样因此然当同意见与会议名字叫谁何地方面间期最主次无未"
)

var common, function = charactersOf(commonHan), charactersOf(functionHan)

func charactersOf(text string) map[string]bool {
	set := map[string]bool{}
	for _, r := range text {
		set[string(r)] = true
	}
	return set
}

var commonWords = func() map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(`the and for with that this these those from into about than then them they their there here have has had
		was were are is be been being not but you your our his her its him she who whom what when where which while will would can could
		should shall may might must does did done say said tell told ask asked know known want wants need needs also only just very more most
		some any all none each other another one two let get got make made use used new now today tomorrow yesterday please yes okay thanks
		thank per via out off over under after before because since until how why too`) {
		set[w], set[text.Stem(w)] = true, true
	}
	return set
}()
