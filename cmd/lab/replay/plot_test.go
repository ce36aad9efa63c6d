package replay

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// someComparison has figures of all three groups.
func someComparison() Comparison {
	talks := synthesizeTalks(1)
	c := Comparison{source: "1 <talk>", results: simulateAll(talks)}
	ours := c.results[0]
	ours.name, ours.group = balancedAsItComes, groupEngine
	c.results = append(c.results, ours)
	return c
}

func TestPlotOfTheSameFiguresIsTheSameBytes(t *testing.T) {
	t.Parallel()
	first := someComparison().DrawSVG()
	if second := someComparison().DrawSVG(); first != second {
		t.Error("two plots of the same figures differ")
	}
}

func TestPlotIsXMLThatNamesEveryPolicy(t *testing.T) {
	t.Parallel()
	c := someComparison()
	var shown strings.Builder
	rects := 0
	for d := xml.NewDecoder(strings.NewReader(c.DrawSVG())); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the plot is no XML: %v", err)
		}
		switch token := token.(type) {
		case xml.CharData:
			shown.Write(token)
		case xml.StartElement:
			if token.Name.Local == "rect" {
				rects++
			}
		}
	}
	for _, r := range c.results {
		if !strings.Contains(shown.String(), r.name) {
			t.Errorf("the plot does not name %q", r.name)
		}
	}
	for _, want := range append([]string{c.source, "各压缩策略的成本"}, plotGroups[groupEngine]) {
		if !strings.Contains(shown.String(), want) {
			t.Errorf("the plot does not say %q", want)
		}
	}
	if rects < 2*len(c.results) {
		t.Errorf("%d rectangles for %d policies", rects, len(c.results))
	}
}
