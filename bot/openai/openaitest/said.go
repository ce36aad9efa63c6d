package openaitest

import (
	"encoding/json"
	"regexp"
	"strings"
)

// said is one statement that the persona reads from a request.
type said struct {
	who  string // request's form of the speaker, such as 张三(u1); empty if unknown
	text string
	from string // context, transcript, or the name of its fence: memory, summary, known …
}

func (s said) nick() string {
	if i := strings.IndexAny(s.who, "(（"); i > 0 {
		return s.who[:i]
	}
	return s.who
}

func (s said) fact() string {
	if s.who == "" {
		return s.text
	}
	return s.nick() + "：" + s.text
}

var (
	fenceOpen  = regexp.MustCompile(`^<<<([a-z-]+)`)
	fenceClose = regexp.MustCompile(`^[a-z-]+( [0-9-]+)? \S+>>>$`)
	clockLine  = regexp.MustCompile(`^\[(?:\d{4}-\d\d-\d\d \d\d:\d\d .*|\d\d:\d\d)\]$`)
	speakerRE  = regexp.MustCompile(`^\[?([\p{Han}\w·][\p{Han}\w .·-]{0,30}(?:[(（][^()（）]{1,80}[)）])?)\]?\s?[:：]\s*(.*)$`)
	notName    = regexp.MustCompile(`(?i)^\d+$|^(决定|结论|约定|注意|提醒|备注|时间|地点|问题|通知|待办|截止.*|负责人|记住|请记住|remember|note|todo|deadline|decision|https?)$`)
	sourceRE   = regexp.MustCompile(`\s*⟦[^⟦⟧]*⟧$`) // source of a pinned memory
	bulletRE   = regexp.MustCompile(`^(?:[-*•]|\d{1,3}[.)、])\s+`)
)

const inTranscript = "transcript"

// namedLine begins the statement of a person in a message that was joined of several, for an endpoint whose roles must alternate.
var namedLine = regexp.MustCompile(`^\S{1,30}[(（][^()（）\s]{1,80}[)）]: `)

// read takes lines of JSON between fences as a transcript, other fenced lines as data of the fence's name, and a
// message without fences as a statement. It also reads the statements in a joined message that name their speakers.
func read(content string) []said {
	first, _, _ := strings.Cut(content, "\n")
	if !strings.Contains(content, "<<<") && !clockLine.MatchString(strings.TrimSpace(first)) {
		return plainly(content)
	}
	var out []said
	fence, mark, open := "", "", "" // open: the statement of a person so far
	end := func() {
		if open != "" {
			out = append(out, plainly(open)...)
		}
		open = ""
	}
	for line := range strings.SplitSeq(content, "\n") {
		line = strings.TrimSpace(line)
		switch m := fenceOpen.FindStringSubmatch(line); {
		case fence == "" && m != nil:
			f := strings.Fields(line)
			fence, mark = m[1], f[len(f)-1]
			end()
		case fence != "" && fenceClose.MatchString(line) && strings.HasSuffix(line, mark+">>>"):
			fence = ""
		case fence == "" && namedLine.MatchString(line):
			end()
			open = line
		case fence == "" && open != "":
			open += "\n" + line
		case line == "" || fence == "":
		default:
			out = append(out, fenced(fence, line))
		}
	}
	end()
	return out
}

func fenced(fence, line string) said {
	var t struct{ Who, Role, Text string }
	if json.Unmarshal([]byte(line), &t) == nil && t.Text != "" {
		if t.Role == "assistant" || t.Role == "tool" {
			return said{text: t.Text, from: t.Role}
		}
		return said{who: t.Who, text: t.Text, from: inTranscript}
	}
	return said{text: sourceRE.ReplaceAllString(line, ""), from: fence}
}

func plainly(content string) []said {
	content = strings.TrimSpace(content)
	if content == "" || clockLine.MatchString(content) {
		return nil
	}
	m := speakerRE.FindStringSubmatch(strings.SplitN(content, "\n", 2)[0])
	if m != nil && !notName.MatchString(m[1]) && !strings.HasPrefix(m[2], "//") {
		who, rest := m[1], m[2]
		if _, more, ok := strings.Cut(content, "\n"); ok {
			rest += "\n" + more
		}
		return []said{{who: who, text: strings.TrimSpace(rest), from: "context"}}
	}
	return []said{{text: content, from: "context"}}
}

// asked are the messages since the last answer in words, and before is everything else.
func readAll(r Request) (before, asked []said) {
	last := -1
	for i, m := range r.Messages {
		if m.Role == "assistant" && len(m.ToolCalls) == 0 {
			last = i
		}
	}
	for i, m := range r.Messages {
		if m.Role != "user" {
			continue
		}
		for _, s := range read(m.Content) {
			if i > last && s.from == "context" {
				asked = append(asked, s)
			} else {
				before = append(before, s)
			}
		}
	}
	return before, asked
}

var (
	sentenceRE = regexp.MustCompile(`[^。！？!?；;\n]+[。！？!?；;\n]*`)
	factRE     = regexp.MustCompile(`(?i)记住|记得|决定|负责|截止|到期|约定|偏好|喜欢|改为|改到|定在|我叫|FACT-|\bremember|\bdecid|\bdeadline|\bowner|\bprefer|\bresponsible|\bdue\b`)
	askRE      = regexp.MustCompile(`[?？]|[吗呢]$|谁|什么|哪|几点|几号|几天|第几|多少|怎么|如何|是不是|有没有|何时|(?i:^(who|what|when|where|which|how|why|did|does|is|are|do)\b)`)
	rememberRE = regexp.MustCompile(`(?i)^(请|麻烦|帮忙|帮我|@\S+\s*)*(记住|记一下|记下|记得)|^(please )?remember\b`)
)

func isQuestion(s string) bool {
	s = strings.TrimSpace(s)
	return !rememberRE.MatchString(s) && askRE.MatchString(strings.TrimRight(s, "。！!；;\n "))
}

func statements(text string) string {
	var b strings.Builder
	for _, s := range sentenceRE.FindAllString(text, -1) {
		if !isQuestion(s) {
			b.WriteString(s)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// facts returns unique statements worth saving, without questions.
func facts(in []said) []said {
	var out []said
	seen := map[string]bool{}
	for _, s := range in {
		s.text = statements(s.text)
		if s.text == "" || !factRE.MatchString(s.text) || seen[s.fact()] {
			continue
		}
		seen[s.fact()] = true
		out = append(out, s)
	}
	return out
}

func only(in []said, from ...string) []said {
	var out []said
	for _, s := range in {
		for _, f := range from {
			if s.from == f {
				out = append(out, s)
			}
		}
	}
	return out
}

// Identifiers must be copied exactly: links, mail, dates, times, amounts, versions, tickets, paths and long numbers.
var identifiersRE = regexp.MustCompile(`https?://[\w./?=&%#:~+-]+|[\w.+-]+@[\w-]+\.[\w.-]+|\b[A-Z][A-Za-z]*-[A-Za-z0-9][A-Za-z0-9-]*\b|(?:\d{4}\s?[年/-]\s?)?\d{1,2}\s?[月/-]\s?\d{1,2}\s?[日号]?|周[一二三四五六日天]|\d{1,2}:\d\d|[¥$]\s?\d[\d,.]*|\d[\d,.]*\s?(?:万元|亿元|万|元|%)|\bv?\d+\.\d+(?:\.\d+)?\b|\B/[\w./-]{3,}|\b\d{6,}\b`)

func identifiers(in []said) []string {
	var out []string
	seen := map[string]bool{}
	for _, s := range in {
		for _, id := range identifiersRE.FindAllString(s.text, -1) {
			if id = strings.TrimSpace(id); !seen[id] {
				seen[id] = true
				out = append(out, id)
			}
		}
	}
	return out
}
