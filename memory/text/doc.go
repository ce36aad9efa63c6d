// Package text makes texts comparable. It is the only place that folds, cuts into words, stems and makes trigrams.
package text
