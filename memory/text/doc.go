// Package text makes texts comparable. It is the only place that folds, cuts into words, stems and makes trigrams.
// [Fold] and [Normalize] keep the words; [Canonical] is the strong fold that rules match against.
package text
