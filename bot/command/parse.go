package command

import (
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Parse parses a text such as "/compact the numbers"; Name is empty for a text that is no command. Chinese keyboards
// write ／ for the slash, and people leave out the blank: "/忘记我确认" is 忘记, 我 and 确认.
func (t Table) Parse(text string) Call {
	text = strings.TrimFunc(text, isBlank)
	if c := t.bare(trimMarks(withoutMentions(text, 0))); c != nil {
		return c.call("")
	}
	if wide, ok := strings.CutPrefix(text, "／"); ok {
		text = "/" + wide
	}
	text, ok := strings.CutPrefix(text, "/")
	if !ok {
		return Call{}
	}
	spaced := strings.TrimLeftFunc(text, isBlank)
	word, rest := cutWord(spaced)
	if c, tail, ok := t.named(word); ok {
		return c.call(strings.TrimSpace(tail + " " + rest))
	}
	if c, tail, ok := t.marked(word); ok {
		return c.call(strings.TrimSpace(tail + " " + rest))
	}
	if spaced != text { // "/ 2", "/ or"
		return Call{}
	}
	return Call{Name: strings.ToLower(word), Rest: rest}
}

func trimMarks(text string) string { return strings.Trim(text, "？?！!。. \t\n") }

func (t Table) bare(text string) *Command {
	for i := range t {
		if c := &t[i]; c.Bare && (strings.EqualFold(c.EN[0], text) || c.ZH[0] == text) {
			return c
		}
	}
	return nil
}

// named finds the command of a word: its name, with or without text glued to it. Other messengers append the bot's
// name: /help@Ebb.
func (t Table) named(word string) (c *Command, tail string, ok bool) {
	for i := range t {
		if tail, ok := t[i].cut(word); ok {
			return &t[i], tail, true
		}
	}
	if plain, to, ok := strings.Cut(word, "@"); ok && to != "" {
		return t.named(plain)
	}
	return nil, "", false
}

// isBlank includes the signs without width that clients put around a mention.
func isBlank(r rune) bool {
	return unicode.IsSpace(r) || strings.ContainsRune("\u200b\u200c\u200d\u2060\ufeff", r)
}

// asides are words behind a name that say nothing.
var asides = regexp.MustCompile(`(?:一下|吧|呀|啊)$`)

// marked finds a name in full-width letters, with marks behind it, as in "/状态。", or with a colon before its argument, as in
// "/提醒：10分钟后".
func (t Table) marked(word string) (c *Command, tail string, ok bool) {
	word = strings.Map(func(r rune) rune {
		if '！' <= r && r <= '～' {
			return r - '！' + '!'
		}
		return r
	}, word)
	if c, tail, ok = t.named(word); ok {
		return c, tail, ok
	}
	name, tail := word, ""
	if at := strings.IndexAny(word, ":,"); at > 0 {
		name, tail = word[:at], word[at+1:]
	}
	if name = asides.ReplaceAllString(strings.TrimRight(name, "?!。.~"), ""); name == "" {
		return nil, "", false
	}
	c, words, ok := t.named(strings.ToLower(name))
	return c, strings.TrimSpace(words + " " + tail), ok
}

// cut returns a rest that is empty, or begins with a word of a use or with its argument.
func (c *Command) cut(word string) (rest string, ok bool) {
	for name := range c.written() {
		if strings.EqualFold(word, name.text) {
			return name.rest, true
		}
	}
	for _, name := range c.names() {
		tail, ok := cutFold(word, name)
		if !ok {
			continue
		}
		if _, word, arg := c.use(tail, true); word != "" || arg != "" {
			return strings.TrimSpace(word + " " + arg), true
		}
	}
	return "", false
}

// writtenName has the words of a use that the name includes.
type writtenName struct{ text, rest string }

// written yields each spelling by which people can write the command. Names are glued to the words of uses too, as Chinese is written
// without blanks.
func (c *Command) written() iter.Seq[writtenName] {
	return func(yield func(writtenName) bool) {
		for _, name := range c.names() {
			if !yield(writtenName{text: name}) {
				return
			}
		}
		for _, u := range c.Uses {
			for _, name := range u.Alone {
				if !yield(writtenName{name, u.words()[0]}) {
					return
				}
			}
			for _, name := range c.names() {
				for _, word := range u.words() {
					if !yield(writtenName{name + word, word}) {
						return
					}
				}
			}
		}
	}
}

func (c *Command) call(rest string) Call {
	use, _, arg := c.use(rest, false)
	least := 0
	if use != nil && use.Person {
		least = 1
	}
	if plain := withoutMentions(rest, least); plain != rest && (plain == "" || use == nil || !use.Text) {
		rest = plain
		use, _, arg = c.use(rest, false)
	}
	return Call{Command: c, Use: use, Name: c.EN[0], Rest: rest, Arg: arg}
}

// withoutMentions drops the mentions at the end, such as the bot's: some clients write them behind the command. The first words stay,
// least of them.
func withoutMentions(text string, least int) string {
	words := strings.Fields(text)
	end := len(words)
	for end > least && (strings.HasPrefix(words[end-1], "@") || strings.HasPrefix(words[end-1], "＠")) {
		end--
	}
	if end == len(words) {
		return text
	}
	return strings.Join(words[:end], " ")
}

// use returns the use of a text behind the name, its word, and the argument. Text glued to the name must begin as a use
// allows it.
func (c *Command) use(rest string, glued bool) (use *Use, word, arg string) {
	first, behind := cutWord(rest)
	for i := range c.Uses {
		u := &c.Uses[i]
		for _, word := range u.words() {
			if strings.EqualFold(strings.TrimRight(first, ",.!，。！"), word) {
				return u, word, behind
			}
			tail, ok := cutFold(first, word)
			if ok && (u.glues(tail) || glued && u.takesText(word, tail)) {
				return u, word, strings.TrimSpace(tail + " " + behind)
			}
		}
	}
	for i := range c.Uses {
		u := &c.Uses[i]
		if len(u.words()) == 0 && (!glued || u.glues(rest)) && u.matches(rest) {
			return u, "", rest
		}
	}
	return nil, "", ""
}

func (u *Use) matches(arg string) bool {
	return (u.Args != Required || arg != "") && (u.Match == nil || u.Match(arg))
}

func (u *Use) takes(arg string) bool {
	switch u.Args {
	case NoArgs:
		return arg == ""
	case Required:
		return arg != ""
	case Number:
		return memoryID(arg) > 0
	}
	return true
}

func (u *Use) glues(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return strings.ContainsRune(u.glue(), r) || slices.ContainsFunc(u.After, func(word string) bool { return strings.HasPrefix(text, word) })
}

func (u *Use) glue() string {
	if u.Args == Number {
		return digits
	}
	return u.Glue
}

// takesText applies to a word of a use that names no beginnings: any text but the bot's name may follow.
func (u *Use) takesText(word, text string) bool {
	r, _ := utf8.DecodeRuneInString(word)
	return !strings.HasPrefix(text, "@") && u.Args != NoArgs && u.Glue == "" && u.After == nil && unicode.Is(unicode.Han, r)
}

func (c *Command) names() []string { return slices.Concat(c.ZH, c.EN) }

func (u *Use) words() []string { return slices.Concat(u.ZH, u.EN) }

func cutWord(text string) (word, rest string) {
	if at := strings.IndexFunc(text, unicode.IsSpace); at >= 0 {
		return text[:at], strings.TrimSpace(text[at:])
	}
	return text, ""
}

func cutFold(text, prefix string) (rest string, ok bool) {
	for _, p := range prefix {
		r, n := utf8.DecodeRuneInString(text)
		if unicode.ToLower(r) != p {
			return "", false
		}
		text = text[n:]
	}
	return text, true
}

// EnglishName takes a name in either language; empty for no command.
func (t Table) EnglishName(name string) string {
	for _, c := range t {
		if slices.Contains(c.EN, name) || slices.Contains(c.ZH, name) {
			return c.EN[0]
		}
	}
	return ""
}

// EnglishNames lists the first English name of each command.
func (t Table) EnglishNames() []string {
	names := make([]string, len(t))
	for i, c := range t {
		names[i] = c.EN[0]
	}
	return names
}

// unknownRE matches the name of an unknown command. A path has a second slash, and a calculation no letter.
var unknownRE = regexp.MustCompile(`^[\p{Han}a-z][\p{Han}a-z0-9_-]{0,23}$`)

// IsCommand reports whether a text is a command or has the form of one. No model is asked about such a text.
func (t Table) IsCommand(text string) bool {
	c := t.Parse(text)
	return c.Command != nil || unknownRE.MatchString(c.Name)
}

// Words returns the words of a command in a language that its sender chose: a name in Chinese, else all behind the name and word.
func (t Table) Words(text string) string {
	if name, _ := cutWord(strings.TrimFunc(text, isBlank)); strings.ContainsFunc(name, isHan) {
		return name
	}
	c := t.Parse(text)
	if c.Use == nil {
		return c.Rest
	}
	return c.Arg
}

func isHan(r rune) bool { return unicode.Is(unicode.Han, r) }

// Kept returns the words of a command that stay its sender's words.
func (t Table) Kept(text string) string {
	if c := t.Parse(text); c.Use != nil && c.Use.Keeps {
		return c.Arg
	}
	return ""
}

func pageOf(text string) (page int, ok bool) {
	if text == "" {
		return 1, true
	}
	page, err := strconv.Atoi(narrow(text))
	return min(page, 1<<20), err == nil && page > 0
}

func narrow(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r >= '０' && r <= '９' || r == '＃' || r == '＠' {
			return r - 0xfee0
		}
		return r
	}, text))
}

// memoryID parses the number of a memory: 12, #12 or １２. It is 0 for any other text.
func memoryID(word string) int64 {
	id, err := strconv.ParseInt(strings.TrimSpace(strings.TrimPrefix(narrow(word), "#")), 10, 64)
	if err != nil {
		return 0
	}
	return max(id, 0)
}
