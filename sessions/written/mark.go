package written

import "strings"

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

// closing finds the end of a call; at is -1 for none.
func (m mark) closing(body string) (at, size int) {
	low := foldAll(body)
	at = -1
	for _, c := range m.close {
		if i := strings.Index(low.text, c); i >= 0 && (at < 0 || low.at[i] < at) {
			at = low.at[i]
			size = low.at[i+len(c)] - at
		}
	}
	return at, size
}

type foldedText struct {
	text string
	at   []int // offset in the text before it was folded, for each byte, and the end
}

func foldAll(s string) foldedText {
	var f foldedText
	var b strings.Builder
	for i, r := range s {
		one := string(folded(r))
		b.WriteString(one)
		for range len(one) {
			f.at = append(f.at, i)
		}
	}
	f.text, f.at = b.String(), append(f.at, len(s))
	return f
}
