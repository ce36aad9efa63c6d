// Package dates finds dates in Chinese and English text and computes the days that they mean. Relative dates count
// from the day of the text. rules.tsv has the expressions, rules.go the days of each.
package dates
