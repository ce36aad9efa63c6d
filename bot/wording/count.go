package wording

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// placeRE matches an escaped percent sign, the place of an argument, and a mark.
var placeRE = regexp.MustCompile(`%%|%(?:\[(\d+)\])?[-+ #0-9.]*[a-zA-Z]|\{([^{}|]*)\|([^{}|]*)\}`)

// markRE matches a mark.
var markRE = regexp.MustCompile(`\{([^{}|]*)\|([^{}|]*)\}`)

// Form chooses the marks of a text, as [Count] does, by one number that stands elsewhere.
func Form(text string, n any) string {
	if strings.TrimSpace(fmt.Sprint(n)) == "1" {
		return markRE.ReplaceAllString(text, "$1")
	}
	return markRE.ReplaceAllString(text, "$2")
}

// Count formats as fmt.Sprintf does. A mark such as message{|s} or {is|are} has the forms for one and for many, and goes by the argument
// before it: a number, or the text of one.
func Count(format string, args ...any) string {
	if !strings.Contains(format, "{") {
		return fmt.Sprintf(format, args...)
	}
	next := 0
	format = placeRE.ReplaceAllStringFunc(format, func(place string) string {
		m := placeRE.FindStringSubmatch(place)
		switch {
		case place == "%%":
		case place[0] == '%':
			if n, err := strconv.Atoi(m[1]); err == nil {
				next = n - 1
			}
			next++
		case next > 0 && next <= len(args) && fmt.Sprint(args[next-1]) == "1":
			return m[2]
		default:
			return m[3]
		}
		return place
	})
	return fmt.Sprintf(format, args...)
}
