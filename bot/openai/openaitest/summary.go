package openaitest

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

var (
	headingRE = regexp.MustCompile(`(?m)^##\s+(\S.*?)\s*$`)
	targetRE  = regexp.MustCompile(`(?i)(\d[\d,]*)\s*(?:个\s*)?(?:token|字)`)
)

// The first match takes the lines of a topic.
var sections = []struct {
	about string
	re    *regexp.Regexp
}{
	{"people", regexp.MustCompile(`(?i)用户|身份|成员|people|participant|user`)},
	{"ids", regexp.MustCompile(`(?i)标识|编号|链接|identifier|reference|key`)},
	{"decisions", regexp.MustCompile(`(?i)决定|决策|约束|规则|decision|constraint`)},
	{"tasks", regexp.MustCompile(`(?i)待办|承诺|下一步|to.?do|promise|pending|next|commit`)},
	{"questions", regexp.MustCompile(`(?i)未决|问题|open|question`)},
	{"done", regexp.MustCompile(`(?i)已完成|完成|done|complete|accomplish`)},
	{"talk", regexp.MustCompile(`(?i)进行|当前|任务|背景|progress|current|task|goal|context`)},
}

func sectionOf(heading string) string {
	for _, s := range sections {
		if s.re.MatchString(heading) {
			return s.about
		}
	}
	return "talk"
}

type digest struct {
	lines map[string][]string
	seen  map[string]bool
	runs  map[string]int // occurrences of each run of characters
	size  int            // estimated tokens
}

// summarize writes the requested sections: every fact, speaker and identifier, the content of a previous summary, and
// some of the talk while there is room.
func summarize(r Request) Reply {
	before, asked := readAll(r)
	all := append(before, asked...)
	talk := only(all, inTranscript)
	if len(talk) == 0 {
		talk = only(all, "context")
	}
	heads := headings(r)
	if len(heads) == 0 {
		if len(talk) == 0 {
			return Text("好的。")
		}
		heads = []string{""} // a text without sections
	}
	d := &digest{lines: map[string][]string{}, seen: map[string]bool{}, runs: map[string]int{}}
	chatter := d.previous(r)
	for _, s := range talk {
		if s.who != "" {
			d.add("people", s.who)
		}
	}
	for _, f := range facts(talk) {
		d.add(map[string]string{"decision": "decisions", "task": "tasks"}[kindOfFact(f.text)], f.fact())
	}
	for _, id := range identifiers(talk) {
		d.add("ids", id)
	}
	if heads[0] == "" {
		return Text(d.write(heads)) // as short as the older summaries that are asked for so
	}
	for _, s := range talk {
		if isQuestion(s.text) && len(d.lines["questions"]) < 3 {
			d.add("questions", clip(s.fact(), 40))
		}
	}
	target := target(r)
	for _, c := range chatter {
		if d.size < target/2 {
			d.add("talk", c)
		}
	}
	for i := len(talk) - 1; i >= 0 && d.size < target*2/3; i-- { // the newest first
		if len([]rune(talk[i].text)) > 6 {
			d.add("talk", chat+clip(talk[i].fact(), 48))
		}
	}
	return Text(d.write(heads))
}

// A later summary may drop lines with this mark.
const chat = "讨论："

func headings(r Request) []string {
	var out []string
	for _, m := range r.Messages {
		text := m.Content
		if m.Role != "system" { // the instructions may stand before the data in one message
			text, _, _ = strings.Cut(text, "<<<")
		}
		for _, h := range headingRE.FindAllStringSubmatch(text, -1) {
			out = append(out, h[1])
		}
		if len(out) > 0 {
			break
		}
	}
	return out
}

func target(r Request) int {
	if len(r.Messages) > 0 {
		if m := targetRE.FindStringSubmatch(r.Messages[0].Content); m != nil {
			if n, err := strconv.Atoi(strings.ReplaceAll(m[1], ",", "")); err == nil && n > 0 {
				return n
			}
		}
	}
	return 600
}

// previous returns the earlier summary's droppable lines.
func (d *digest) previous(r Request) (chatter []string) {
	about := "talk"
	for _, m := range r.Messages {
		if m.Role != "user" {
			continue
		}
		for _, s := range only(read(m.Content), "previous-summary", "summary", "draft") {
			line := bulletRE.ReplaceAllString(s.text, "")
			switch h := headingRE.FindStringSubmatch(s.text); {
			case h != nil:
				about = sectionOf(h[1])
			case strings.HasPrefix(line, chat):
				chatter = append(chatter, line)
			case about == "ids" || about == "people":
				for id := range strings.SplitSeq(line, "、") {
					d.add(about, id)
				}
			case line != "无":
				d.add(about, line)
			}
		}
	}
	return chatter
}

// A summary with more occurrences of a run of characters looks broken. A longer line is reduced to its unique parts.
const maxRun, runLength = 9, 7

func (d *digest) add(about, line string) {
	if about == "" {
		about = "decisions"
	}
	if line = strings.TrimSpace(line); about == "ids" { // an amount without its unit would be a repeated word
		line = strings.ReplaceAll(line, " ", "")
	}
	if line == "" || d.seen[about+line] {
		return
	}
	d.seen[about+line] = true
	if about != "ids" && about != "people" && d.repeats(line) {
		for _, id := range identifiersRE.FindAllString(line, -1) {
			d.add("ids", id)
		}
		return
	}
	d.lines[about] = append(d.lines[about], line)
	d.size += tokens(line)
}

// repeats ignores digits.
func (d *digest) repeats(line string) bool {
	var rs []rune
	for _, r := range line {
		if unicode.IsLetter(r) {
			rs = append(rs, r)
		}
	}
	var runs []string
	for i := 0; i+runLength <= len(rs); i++ {
		runs = append(runs, string(rs[i:i+runLength]))
	}
	for _, r := range runs {
		if d.runs[r] >= maxRun {
			return true
		}
	}
	for _, r := range runs {
		d.runs[r]++
	}
	return false
}

func tokens(s string) int {
	n := 0
	for _, r := range s {
		if r < 128 {
			n++
		} else {
			n += 4
		}
	}
	return n/4 + 1
}

func (d *digest) write(heads []string) string {
	var b strings.Builder
	home := map[string]string{} // heading of each topic
	for _, h := range heads {
		if a := sectionOf(h); home[a] == "" {
			home[a] = h
		}
	}
	for _, s := range sections { // topics without a heading go under the first
		if home[s.about] == "" {
			home[s.about] = heads[0]
		}
	}
	for _, h := range heads {
		if h != "" {
			b.WriteString("## " + h + "\n")
		}
		empty := true
		for _, s := range sections {
			if home[s.about] != h || len(d.lines[s.about]) == 0 {
				continue
			}
			empty = false
			if s.about == "ids" || s.about == "people" {
				b.WriteString("- " + strings.Join(d.lines[s.about], "、") + "\n")
				continue
			}
			for _, l := range d.lines[s.about] {
				b.WriteString("- " + l + "\n")
			}
		}
		if empty {
			b.WriteString("无\n")
		}
	}
	return strings.TrimSpace(b.String())
}
