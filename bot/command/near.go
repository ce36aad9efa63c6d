package command

import (
	"slices"
	"strings"
	"unicode/utf8"

	"ebb/bot/wording"
)

// Near returns the name of the table that an unknown one may mean, as written behind a slash; empty for none. It differs by one letter, and
// names of commands precede those with a word. Or the name is the word of one command alone: /undo means /compact undo.
func (t Table) Near(name string) string {
	for i := range t {
		for _, own := range t[i].names() {
			if oneApart(name, own) {
				return own
			}
		}
	}
	for i := range t {
		for own := range t[i].written() {
			if oneApart(name, own.text) {
				return t[i].spelled(own)
			}
		}
	}
	return t.ofWord(name)
}

func (t Table) unknown(name, lang string) string {
	if near := t.Near(name); near != "" {
		return wording.Say(wording.NoCommandNear, lang, near)
	}
	return wording.Say(wording.NoCommand, lang)
}

func (t Table) ofWord(word string) (found string) {
	for _, c := range t {
		for _, u := range c.Uses {
			name := ""
			switch {
			case slices.Contains(u.EN, strings.ToLower(word)):
				name = c.EN[0]
			case slices.Contains(u.ZH, word):
				name = c.ZH[0]
			default:
				continue
			}
			if found != "" {
				return ""
			}
			found = name + " " + strings.ToLower(word)
		}
	}
	return found
}

func (c *Command) spelled(name writtenName) string {
	plain, ok := strings.CutSuffix(name.text, name.rest)
	if !ok || name.rest == "" || name.rest[0] >= utf8.RuneSelf {
		return name.text
	}
	return plain + " " + name.rest
}

// Near returns the word of a use that differs from a text by one letter; empty for none. It compares Latin words only,
// because a Chinese word of two characters is close to many others.
func (c *Command) Near(text string) string {
	for _, u := range c.Uses {
		for _, word := range u.EN {
			if oneApart(strings.ToLower(text), word) {
				return word
			}
		}
	}
	return ""
}

// oneApart reports whether one letter is replaced, added, removed, or swapped with its neighbor. A word with a single
// letter is near no other.
func oneApart(one, other string) bool {
	if len(one) > 100 {
		return false
	}
	a, b := []rune(one), []rune(other)
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 || len(b) == 1 || slices.Equal(a, b) {
		return false
	}
	i, j := 0, 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if i == 0 && len(b) == 2 && b[0] >= utf8.RuneSelf { // 退出 is no slip of 导出: the first character has the sense
		return false
	}
	for j < len(a)-i && a[len(a)-1-j] == b[len(b)-1-j] {
		j++
	}
	restA, restB := a[i:len(a)-j], b[i:len(b)-j]
	swapped := len(restA) == 2 && len(restB) == 2 && restA[0] == restB[1] && restA[1] == restB[0]
	return len(restA) <= 1 && len(restB) <= 1 || swapped
}
