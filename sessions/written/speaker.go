package written

import "strings"

// speakerAt decides on the beginning of a later line: words in another's name end the answer, unless such lines are its words.
// lead is what was removed before the answer.
func (ns *names) speakerAt(s string, final bool, l *lines, lead lead) decision {
	indent := len(s) - len(strings.TrimLeft(s, " \t\u3000"))
	if indent == len(s) && !final {
		return open
	}
	s = s[indent:]
	ofItem := indent > 0 && l.belowItem() // it goes on with the item
	if n, _, wait := ns.speaker(s); !ofItem && (n > 0 || wait && !final) {
		switch list, wait := ns.isIndentedList(s); {
		case n == 0 || indent > 0 && wait && !final:
			return open
		case indent > 0 && list:
			return decision{keeps: true}
		}
		return otherSpeaker(n, l)
	}
	like, wait := lead.isLike(s, final)
	switch {
	case like:
		return decision{restores: true}
	case wait:
		return open
	case ofItem:
		return other
	case !final && halfClock.MatchString(s):
		return open
	}
	return ns.clockAt(s, final, l, lead)
}

// clockAt decides on a time that begins a line, with the name behind or below it.
func (ns *names) clockAt(s string, final bool, l *lines, lead lead) decision {
	at := len(clock.FindString(s))
	if at == 0 {
		return other
	}
	line, below, found := strings.Cut(s[at:], "\n")
	switch {
	case !found && !final && strings.TrimSpace(line) == "":
		return open
	case strings.TrimSpace(line) != "":
		n, _, wait := ns.speaker(strings.TrimLeft(line, " \t"))
		switch {
		case n > 0:
			return otherSpeaker(at, l)
		case wait && !found && !final:
			return open
		}
		return decision{restores: clock.MatchString(string(lead)) && !fullClock.MatchString(string(lead))} // lines of a timetable
	case fullClock.MatchString(s):
		return otherSpeaker(at, l)
	}
	n, _, wait := ns.speaker(below)
	switch {
	case n > 0:
		return otherSpeaker(at, l)
	case (wait || below == "") && !final:
		return open
	}
	return other
}

// otherSpeaker ends the answer before n bytes, unless the line before them introduces words of people.
func otherSpeaker(n int, l *lines) decision {
	if l.belowIntro() {
		return decision{keeps: true}
	}
	return decision{outcome: isRemoved, n: n, found: Spoken, ends: true}
}

// isIndentedList reports whether one more indented line below begins with a name: tasks or minutes have such lines.
func (ns *names) isIndentedList(s string) (list, wait bool) {
	const most = 2000 // bytes
	_, below, _ := strings.Cut(s, "\n")
	for line := range strings.Lines(below[:min(len(below), most)]) {
		text := strings.TrimLeft(line, " \t\u3000")
		n, _, half := ns.speaker(text)
		switch {
		case strings.TrimSpace(text) == "":
		case text == line:
			return false, false
		case n > 0:
			return true, false
		case half:
			return false, true
		}
	}
	return false, len(below) < most
}
