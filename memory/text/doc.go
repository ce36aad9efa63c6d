// Package text makes texts comparable. It is the only place that folds, cuts into words, stems and makes
// trigrams. Package memory/similarity compares texts by them.
//
//	words.go      [Fold], [Normalize], [Runs], [Tokenize], [Terms], [Stem]
//	canonical.go  [Canonical]: the strong fold that the rules of memory/classify and memory/dates match against
//	lazy.go       [LazyRegexp]
//	clean.go      [Clean], [Split], [Clip], [Sentences]
//	trigrams.go   [Trigrams], and sets compared: [Share], [Jaccard], [Within]
package text
