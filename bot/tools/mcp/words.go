package mcp

import (
	"strings"
	"unicode/utf8"
)

// maxName is the longest name that is shown, in bytes: the limit of providers for the names of tools.
const maxName = 64

// storable drops what PostgreSQL refuses.
func storable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "�"), "\x00", "")
}

// cut shortens text to at most limit bytes, at a character.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "…"
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
