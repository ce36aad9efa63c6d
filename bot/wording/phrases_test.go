package wording

import (
	"strings"
	"testing"
)

func TestApologies(t *testing.T) {
	t.Parallel()
	for _, lang := range []string{"zh", "en"} {
		for p := range phrases {
			if text := Say(p, lang); strings.TrimSpace(text) == "" {
				t.Errorf("phrase %d says nothing in %s", p, lang)
			}
		}
	}
	for p, texts := range phrases {
		if a, b := strings.Count(texts[0], "%"), strings.Count(texts[1], "%"); a != b {
			t.Errorf("phrase %d has %d places in Chinese and %d in English", p, a, b)
		}
	}
}
