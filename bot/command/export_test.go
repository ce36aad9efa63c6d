package command

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// Pages of an export hold every line, each once, in order and under its heading, however long the lines are.
func TestExportPagesHoldEverything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			n := rapid.OneOf(rapid.IntRange(1, 300), rapid.IntRange(exportPageBytes/4, exportPageBytes)).Draw(t, "length")
			return strings.Repeat("好", n) + "\n"
		}), 0, 12).Draw(t, "lines")
		facts := rapid.IntRange(0, len(lines)).Draw(t, "facts")
		fill := func(page int) *exportPager {
			p := &exportPager{want: page}
			for i, line := range lines {
				p.add(map[bool]string{true: "## facts", false: "## messages"}[i < facts], line)
			}
			return p
		}
		pages := fill(1).page
		var all strings.Builder
		for page := 1; page <= pages; page++ {
			text := fill(page).out.String()
			if !strings.HasPrefix(text, "\n## ") || !utf8.ValidString(text) || len(text) > exportPageBytes+100 {
				t.Fatalf("page %d of %d: %d bytes, begins with %q", page, pages, len(text), text[:min(len(text), 20)])
			}
			all.WriteString(strings.NewReplacer("\n## facts\n\n", "", "\n## messages\n\n", "").Replace(text))
		}
		if all.String() != strings.Join(lines, "") {
			t.Fatalf("%d bytes in %d pages, want %d bytes", all.Len(), pages, len(strings.Join(lines, "")))
		}
	})
}
