package redact

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
)

//go:embed shapes.tsv
var shapeLines string

// shapes are the rules of shapes.tsv.
var shapes = parseShapes(shapeLines)

// shapeRule finds one kind of credential by its shape or its frame.
type shapeRule struct {
	framed bool
	// hints are first letters, one of which every match has. The search for them is much faster than the expression.
	hints       []string
	match, miss string // examples
	re          *regexp.Regexp
}

// parseShapes reads rules. The text is linked in and tested, so a mistake panics.
func parseShapes(text string) []shapeRule {
	var rules []shapeRule
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		r := shapeRule{framed: f[0] == "frame", match: f[2], miss: f[3], re: regexp.MustCompile(f[4])}
		if !r.framed {
			r.hints = strings.Fields(f[1])
		}
		rules = append(rules, r)
	}
	return rules
}

// mayMatch reports whether a text has a hint of the rule.
func (r shapeRule) mayMatch(text string) bool {
	return slices.ContainsFunc(r.hints, func(hint string) bool { return strings.Contains(text, hint) })
}
