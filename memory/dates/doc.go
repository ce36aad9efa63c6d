// Package dates is the grammar of dates in Chinese and English. It finds dates in a text and computes the days that they
// mean. Relative dates count from the day on which the text was said. The expressions are rules.tsv, by name; rules.go
// computes the days of each.
package dates
