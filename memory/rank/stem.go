package rank

import "ebb/memory/text"

// "went" and "going" are "go", "pics" is a photograph.
func stemWord(word string) string {
	if base, ok := irregular[word]; ok {
		word = base
	}
	return text.Stem(word)
}
