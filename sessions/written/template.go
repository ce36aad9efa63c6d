package written

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// mark is a mark of a model's template, with ASCII bars and underscores in place of DeepSeek's own.
type mark struct {
	open  string
	close []string // ends of a call; empty: the end of the text
	place place
}

// place is the part of a template that a mark belongs to.
type place uint8

const (
	atCall  place = iota
	atEnd         // end of a turn
	atStart       // start of a turn: its role follows
	atRole        // role of a turn
)

var marks = append([]mark{
	{open: "<tool_call>", close: []string{"</tool_call>"}},
	{open: "<tool_calls>", close: []string{"</tool_calls>"}},
	{open: "<tool_use>", close: []string{"</tool_use>"}},
	{open: "<function_call>", close: []string{"</function_call>"}},
	{open: "<function_calls>", close: []string{"</function_calls>"}},
	{open: "<function name=", close: []string{"</function>"}},
	{open: "<functioncall>", close: []string{"</functioncall>"}},
	{open: "<tool_code>", close: []string{"</tool_code>"}},
	{open: "<function=", close: []string{"</function>"}},
	{open: "<invoke name=", close: []string{"</invoke>"}},
	{open: "<minimax:tool_call>", close: []string{"</minimax:tool_call>"}},
	{open: "<|dsml|function_calls>", close: []string{"</|dsml|function_calls>"}},
	{open: "<|dsml|tool_calls>", close: []string{"</|dsml|tool_calls>"}},
	{open: "<antml:function_calls>", close: []string{"</antml:function_calls>"}},
	{open: "<antml:invoke name=", close: []string{"</antml:invoke>"}},
	{open: "<steptml:invoke name=", close: []string{"</steptml:invoke>"}},
	{open: "<seed:tool_call>", close: []string{"</seed:tool_call>"}},
	{open: "<toolcall>", close: []string{"</toolcall>"}},
	{open: "<tools>", close: []string{"</tools>"}},
	{open: "<start_function_call>", close: []string{"<end_function_call>"}},
	{open: "<|tool_call_start|>", close: []string{"<|tool_call_end|>"}},
	{open: "<|start_action|>", close: []string{"<|end_action|>"}},
	{open: "<|python_start|>", close: []string{"<|python_end|>"}},
	{open: "<|tool_call|>", close: []string{"<|/tool_call|>", "<|end_tool_call|>", "</tool_call>"}},
	{open: "<|tool_call>", close: []string{"<tool_call|>", "</|tool_call>"}},
	{open: "<|tool_calls|>", close: []string{"<|/tool_calls|>"}},
	{open: "<|tool_calls_section_begin|>", close: []string{"<|tool_calls_section_end|>"}},
	{open: "<|tool_call_begin|>", close: []string{"<|tool_call_end|>"}},
	{open: "<|tool_calls_begin|>", close: []string{"<|tool_calls_end|>"}},
	{open: "<|function_call|>", close: []string{"<|/function_call|>"}},
	{open: "<|action_start|>", close: []string{"<|action_end|>"}},
	{open: "<|python_tag|>", close: []string{"<|eom_id|>", "<|eot_id|>"}},
	{open: "<|channel|>commentary", close: []string{"<|call|>"}},
	{open: "[tool_calls]"},
	{open: "[tool_call]", close: []string{"[/tool_call]"}},
}, turnMarks()...)

// turnMarks are the tokens by which chat templates separate turns. Servers with a wrong template leave them in the text. Those of an
// end are cut where they stand last; those of a beginning end the answer, since an invented turn follows.
func turnMarks() (all []mark) {
	for place, opens := range map[place][]string{
		atEnd: {
			"<|im_end|>", "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>", "<|eot|>", "<|eos|>", "<eos>", "</s>", "<end_of_turn>", "<turn|>",
			"<|end_of_turn|>", "<|end_of_turn_token|>", "<|end_of_sentence|>", "<|end|>", "<|return|>", "<|endofassistant|>", "<seed:eos>", "<eoa>",
			"<|eom|>", "<|message_end|>", "<|tool_response>", "<pad>", "<unk>", "[eos]", "[pad]", "[/inst]",
		},
		atStart: {
			"<|im_start|>", "<|start_header_id|>", "<|header_start|>", "<start_of_turn>", "<|turn>", "<|start_of_role|>", "<|start_of_turn_token|>",
			"<|start|>", "<|begin_of_sentence|>", "<|begin_of_text|>", "<seed:bos>", "<bos>", "<s>",
		},
		atRole: {
			"<|user|>", "<|assistant|>", "<|system|>", "<|observation|>", "<|im_user|>", "<|im_assistant|>", "<|im_system|>",
			"<|user_token|>", "<|chatbot_token|>", "<|system_token|>", "[inst]",
		},
	} {
		for _, open := range opens {
			all = append(all, mark{open: open, place: place})
		}
	}
	return all
}

var maxMark = func() int {
	n := 0
	for _, m := range marks {
		n = max(n, len(m.open))
	}
	return n
}()

// folded maps DeepSeek's bars and blanks, and capitals, to one character each.
func folded(r rune) rune {
	switch {
	case r == '｜':
		return '|'
	case r == '▁':
		return '_'
	case r >= 'A' && r <= 'Z':
		return r + 'a' - 'A'
	}
	return r
}

// findMark returns the mark at the beginning of a text and its length there. wait: one may begin there.
func findMark(s string) (m mark, n int, wait bool) {
	var head []byte
	ends := []int{} // bytes of s for each byte of head
	for i, r := range s {
		if len(head) == maxMark {
			break
		}
		c := folded(r)
		if c > 0x7e {
			break
		}
		head = append(head, byte(c))
		ends = append(ends, i+len(string(r)))
	}
	whole := len(ends) > 0 && ends[len(ends)-1] == len(s)
	for _, one := range marks {
		switch {
		case strings.HasPrefix(string(head), one.open):
			return one, ends[len(one.open)-1], false
		case whole && strings.HasPrefix(one.open, string(head)):
			wait = true
		}
	}
	return mark{}, 0, wait
}

// isPartOfMark reports whether the beginning of a mark is too long for words.
func isPartOfMark(s string) bool {
	return len(s) >= 5 && s[0] == '<' && (strings.HasPrefix(s, "<|") || strings.HasPrefix(s, "<｜") || strings.Contains(s, "_"))
}

const (
	roles    = `(?i:user(?:_\d{1,4})?|assistant|system|developer|tool|model|human|ipython|observation|environment|用户|助手)`
	roleName = `(?:(?:[ \t]+name[ \t]*=[ \t]*|[ \t]*[:：][ \t]*)[^\s<>]{1,60})?`
	roleEnds = `<\|(?:end_header_id|header_end|end_of_role|im_middle|im_sep|message|channel)\|>`
	nameEnds = `(?:[ \t]*\r?\n|` + roleEnds + `)`
)

var (
	// roleLine stands behind the start of a turn, roleLabel behind the end of one.
	roleLine  = regexp.MustCompile(`^` + roles + roleName + `(?:[ \t]*\r?\n|` + roleEnds + `)`)
	roleLabel = regexp.MustCompile(`^` + roles + `[ \t]*[:：\r\n]`)
	halfRole  = regexp.MustCompile(`^(?:[A-Za-z]{0,11}|用户?|助手?)(?:[ \t]*\r?|<[|a-z_]{0,15})$`)
	ownRole   = regexp.MustCompile(`^(?i:assistant|model)` + roleName + `(?:[ \t]*\r?\n|` + roleEnds + `)`)
	// halfName is the beginning of a line with a role and a name.
	halfName  = regexp.MustCompile(`^[^\n<>]{0,80}(?:\r?|<[|a-z_]{0,15})$`)
	endOfName = regexp.MustCompile(`^` + nameEnds)
	lineEnd   = regexp.MustCompile(`^[ \t]*\r?\n`)
	halfEnd   = regexp.MustCompile(`^[ \t]*\r?$`)
	// leads introduces a mark: a colon, or the sign of an item. sentence is the end of one.
	leads    = regexp.MustCompile(`(?:[:：=][ \t]*|(?:用|是|写|写成|例如|比如|像|\b(?:with|uses?|like|is|writes?))[ \t]+|^[ \t>]*(?:[-*+•]|\d{1,3}[.)、])[ \t]*)$`)
	sentence = regexp.MustCompile(`[。！？!?.…～~]["”’)）*]{0,3}$`)
)

// turn decides on a mark around turns and those behind it. A turn ended only at the end of the text, or where another one follows by its
// form. All other marks are words about a template, and so is a template behind an introduction.
func (f *Filter) turn(m mark, n int, final bool) int {
	if m.open == "<s>" || m.open == "</s>" && bytes.Contains(f.out, []byte("<s>")) { // HTML
		return f.emit(f.buf[:n])
	}
	last, size := m, n
	for {
		blank := len(f.buf[size:]) - len(strings.TrimLeft(f.buf[size:], " \t\r\n"))
		next, k, wait := findMark(f.buf[size+blank:])
		if wait && !final {
			return 0
		}
		if k == 0 || next.place == atCall {
			break
		}
		last, size = next, size+blank+k
	}
	ends, starts, wait := f.turnEnds(last, f.buf[size:], size > n)
	switch {
	case wait && !final:
		return 0
	case f.template, (ends || starts) && f.introduced():
		f.template = f.template || starts
	case starts && len(bytes.TrimSpace(f.out)) == 0 && f.header(last, size) > 0:
		f.note(Leaked)
		f.began, f.decided = false, false
		return f.header(last, size)
	case starts, ends && !f.mentions:
		f.note(Leaked)
		f.ended = true
		return size
	}
	f.mentions = true
	return f.emit(f.buf[:size])
}

// turnEnds judges the text behind the last mark of a chain. starts: another turn follows. ends: the text ends.
// wait: both may change.
func (f *Filter) turnEnds(last mark, rest string, chain bool) (ends, starts, wait bool) {
	behind := strings.TrimLeft(rest, " \t\r\n")
	if behind == "" && (last.place != atRole || !lineEnd.MatchString(rest)) {
		return true, false, true
	}
	first, _ := utf8.DecodeRuneInString(rest)
	glued := unicode.IsLetter(first) || unicode.IsDigit(first)
	sentenced := sentence.Match(f.cur)
	switch last.place {
	case atStart:
		return false, roleLine.MatchString(behind) || f.cfg.isNameLine(rest), halfRole.MatchString(behind) || halfName.MatchString(behind)
	case atRole:
		line := lineEnd.MatchString(rest)
		if chain {
			return false, line || glued || last.open == "[inst]", halfEnd.MatchString(rest)
		}
		apart := strings.TrimSpace(string(f.cur)) != "" && bytes.HasSuffix(f.cur, []byte(" ")) && !sentence.Match(bytes.TrimSpace(f.cur))
		return false, line && !apart || glued && sentenced, halfEnd.MatchString(rest)
	}
	if roleLabel.MatchString(behind) || sentenced && lineEnd.MatchString(rest) {
		return false, true, false
	}
	if wait = halfRole.MatchString(behind) || halfEnd.MatchString(rest); !lineEnd.MatchString(rest) {
		return false, false, wait
	}
	own, _, half := f.name(behind, true, f.cfg.Self)
	n, _, other := f.name(behind, false, f.cfg.Speakers...)
	return false, own > 0 || n > 0 || clock.MatchString(behind), wait || half || other || halfClock.MatchString(behind)
}

// isNameLine reports whether a line is the name of the bot or of a person whom the request shows.
func (c *Config) isNameLine(s string) bool {
	return isLine(s, c.Self) || slices.ContainsFunc(c.Speakers, func(name string) bool {
		nick, _, _ := strings.Cut(name, "(")
		return isLine(s, name) || isLine(s, nick)
	})
}

func isLine(s, name string) bool {
	rest, ok := cutFold(s, name)
	return ok && name != "" && endOfName.MatchString(rest)
}

// introduced reports whether the words before a mark introduce it.
func (f *Filter) introduced() bool {
	if blank := len(bytes.TrimSpace(f.cur)) == 0; !blank || f.prev == "" {
		return leads.Match(f.cur)
	}
	before := strings.TrimSpace(f.prev)
	return introduces.MatchString(before[max(0, len(before)-maxIntro):])
}

// header returns the bytes of marks that begin the bot's own turn, 0 for none.
func (f *Filter) header(last mark, size int) int {
	rest := f.buf[size:]
	behind := strings.TrimLeft(rest, " \t\r\n")
	switch m := ownRole.FindString(behind); {
	case last.place == atStart && m != "":
		return size + len(rest) - len(behind) + len(m)
	case last.place == atStart && isLine(behind, f.cfg.Self):
		return size + len(rest) - len(behind) + len(f.cfg.Self) + len(endOfName.FindString(behind[len(f.cfg.Self):]))
	case strings.Contains(last.open, "assistant") || last.open == "<|chatbot_token|>":
		return size
	}
	return 0
}
