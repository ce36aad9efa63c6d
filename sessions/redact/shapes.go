package redact

import (
	"regexp"
	"slices"
	"strings"

	"ebb/sessions/rules"
)

var shapes = newShapes(ruleFile.All())

type shapeRule struct {
	framed bool
	// hints are first letters, one of which every match has. A search for them is much faster.
	hints []string
	re    *regexp.Regexp
}

func newShapes(all []rules.Rule) []shapeRule {
	var shapes []shapeRule
	for _, r := range all {
		switch r.List {
		case "shape":
			shapes = append(shapes, shapeRule{hints: strings.Fields(r.Columns[0]), re: regexp.MustCompile(r.Expr)})
		case "frame":
			shapes = append(shapes, shapeRule{framed: true, re: regexp.MustCompile(r.Expr)})
		}
	}
	return shapes
}

func (r shapeRule) mayMatch(text string) bool {
	return slices.ContainsFunc(r.hints, func(hint string) bool { return strings.Contains(text, hint) })
}
