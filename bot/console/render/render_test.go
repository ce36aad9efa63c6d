package render

import (
	"testing"
	"time"
)

// Each page can be parsed in each variant. A gateway parses one when it is shown first.
func TestEachPageIsParsed(t *testing.T) {
	t.Parallel()
	r, err := New(time.UTC, uncharged)
	if err != nil {
		t.Fatal(err)
	}
	for _, lang := range languages {
		for _, whole := range []bool{true, false} {
			pages := r.pages[variant{lang, whole}]
			if len(pages) == 0 {
				t.Errorf("no page in %s, whole %t", lang, whole)
			}
			for name, page := range pages {
				if _, err := page(); err != nil {
					t.Errorf("%s in %s, whole %t: %v", name, lang, whole, err)
				}
			}
		}
	}
}

// A console that shows no page keeps no template.
func TestUnshownPagesTakeNoMemory(t *testing.T) {
	if n := testing.AllocsPerRun(3, func() {
		if _, err := New(time.UTC, uncharged); err != nil {
			t.Fatal(err)
		}
	}); n > 20_000 {
		t.Errorf("a new console makes %.0f allocations", n)
	}
}

// uncharged is the currency of a configuration without prices.
func uncharged() string { return "" }
